package command

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	v := version(&debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02"}, {Key: "vcs.modified", Value: "true"},
		},
	}, true)
	if v.Version != "v1.2.3" || v.Revision != "abc" || v.Time != "2026-01-02" || !v.Modified {
		t.Errorf("%+v", v)
	}
	if v := version(nil, false); v.Version != "unknown" || v.Go == "" || v.Kernel == "" {
		t.Errorf("%+v", v)
	}
}
