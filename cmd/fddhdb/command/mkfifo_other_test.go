//go:build !unix

package command

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
