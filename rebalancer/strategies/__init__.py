"""What should move: one pure strategy per file, each asking a view for pods and giving a reason."""
