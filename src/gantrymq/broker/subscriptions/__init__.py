"""Connected clients and their subscriptions: sessions, subscription conflicts, pull filters."""
