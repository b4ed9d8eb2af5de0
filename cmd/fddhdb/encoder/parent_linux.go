package encoder

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel end the program when the thread that starts it ends. A
// program that does not read its input would never see that this process is gone.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
