"""The dialect of Gemini: what it writes, what it reads, what it does when refused."""
