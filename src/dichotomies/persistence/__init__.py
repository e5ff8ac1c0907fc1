"""Models as files: arrays in safetensors, the rest in versioned JSON; loading runs no code from the file."""
