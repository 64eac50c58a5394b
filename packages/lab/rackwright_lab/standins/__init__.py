"""What a lab cannot have for real: the serving image, the model hub, the host of the encodings."""
