module space/guest

go 1.26.0

require (
	connectrpc.com/connect v1.21.1 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
