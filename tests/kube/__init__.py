"""How the API server is spoken to, against a scripted one and against recorded answers of a real one."""
