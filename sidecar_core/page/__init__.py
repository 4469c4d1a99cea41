"""The page, in Gradio."""
