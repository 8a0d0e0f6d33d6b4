"""What lies beside a dump: the HLO text and the compiler's protobuf."""
