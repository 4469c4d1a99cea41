"""Events as HTML, tables and figures. Nothing here knows Gradio."""
