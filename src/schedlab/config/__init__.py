"""Typed configuration: schema, composition, frozen parts, hashes, provenance, and the contract of a study."""
