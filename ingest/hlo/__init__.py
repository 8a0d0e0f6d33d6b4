"""The sidecar files of a dump: the HLO text and the compiler's protobuf."""
