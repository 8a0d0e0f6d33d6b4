"""What keeps a database in order between imports: health, deleting, compacting, export."""
