"""What all routes share: access control, bodies, errors, middleware, content negotiation."""
