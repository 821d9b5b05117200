"""The stages that serve every study: learn, evaluate, summarise, draw."""
