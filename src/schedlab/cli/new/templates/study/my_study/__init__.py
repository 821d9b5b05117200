"""In which order should machines run jobs whose run times are only estimated?"""
