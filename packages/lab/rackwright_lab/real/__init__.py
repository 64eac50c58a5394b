"""A real engine for the lab: vLLM as built for the CPU, and a real model small enough to be taught on the spot."""
