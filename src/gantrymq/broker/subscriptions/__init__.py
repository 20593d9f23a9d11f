"""Who is connected and what they want: sessions, subscription conflicts, filters of pulls."""
