"""The page, built with Gradio."""
