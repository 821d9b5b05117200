"""When and where should a network grow while its training budget runs out? (Net2Net adaptation under a time budget)"""
