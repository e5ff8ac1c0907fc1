"""Small trees on binned features, and boosting them at the nodes of a class tree."""
