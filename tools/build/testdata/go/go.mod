module xce.example/testdata

go 1.23
