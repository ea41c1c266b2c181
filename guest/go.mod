module space/guest

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.50.0
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/text v0.43.0 // indirect
