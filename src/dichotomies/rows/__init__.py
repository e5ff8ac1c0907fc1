"""The training rows and the parts they are divided into."""
