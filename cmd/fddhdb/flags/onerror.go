package flags

import "errors"

// OnError is the value of --on-error.
type OnError struct{ Skip *bool }

func (f OnError) Type() string { return "stop|skip" }

func (f OnError) String() string {
	if f.Skip != nil && *f.Skip {
		return "skip"
	}
	return "stop"
}

func (f OnError) Set(s string) error {
	if s != "stop" && s != "skip" {
		return errors.New("stop and skip are possible")
	}
	*f.Skip = s == "skip"
	return nil
}
