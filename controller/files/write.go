package files

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
)

// Modes of a write.
const (
	ModeCreate    = "create"
	ModeOverwrite = "overwrite"
	ModeAppend    = "append"
)

// WriteRequest asks to write a file.
type WriteRequest struct {
	Path     string  `json:"path"`
	Content  *string `json:"content"`
	Encoding string  `json:"encoding,omitempty"`
	// Mode is create where it is empty, which never replaces anything.
	Mode string `json:"mode,omitempty"`
	// ExpectedSHA256 is what the file must have before, in hexadecimal.
	ExpectedSHA256 string `json:"expected_sha256,omitempty"`
}

// WriteResult is a file that was written.
type WriteResult struct {
	Path    string `json:"path"`
	Created bool   `json:"created"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	// Backup is a copy of what was replaced.
	Backup string `json:"backup,omitempty"`
	Diff
}

// Write writes a file as a whole: a temporary file in the same folder, then a
// rename. Permission bits of a file that exists are kept. The error is an
// [*Error] or the cause of ctx; then the file is as it was.
func (s *Space) Write(ctx context.Context, r WriteRequest) (*WriteResult, error) {
	content, err := r.content()
	if err != nil {
		return nil, err
	}
	p, err := s.find(r.Path)
	if err != nil {
		return nil, err
	}
	if p.rel == "." {
		return nil, refuse(NotAFile, r.Path, "%q is a folder", r.Path)
	}
	c, err := snapshot(p)
	if err != nil {
		return nil, err
	}
	if err := checkHash(&c, r.ExpectedSHA256); err != nil {
		return nil, err
	}
	switch {
	case (r.Mode == ModeCreate || r.Mode == "") && c.exists:
		return nil, refuse(Conflict, r.Path, "%q exists already and mode is %q", r.Path, ModeCreate)
	case r.Mode == ModeAppend:
		content = append(c.before[:len(c.before):len(c.before)], content...)
	}
	if len(content) > MaxFile {
		return nil, refuse(TooLarge, r.Path, "%q would have %d bytes, more than %d", r.Path, len(content), MaxFile)
	}
	if info, err := p.root.Stat(filepath.Dir(p.rel)); err != nil {
		return nil, fromOS(r.Path, err)
	} else if !info.IsDir() {
		return nil, refuse(NotFound, r.Path, "there is no folder for %q", r.Path)
	}
	c.after = content
	k := s.newCommit([]change{c})
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	return &WriteResult{
		Path: p.abs(), Created: !c.exists, Size: int64(len(content)), SHA256: hashOf(content),
		Backup: k.backups[r.Path], Diff: diffOf(ctx, []change{c}),
	}, nil
}

func (r *WriteRequest) content() ([]byte, error) {
	switch {
	case r.Content == nil:
		return nil, badField("content", "expected a string, got none")
	case r.Mode != "" && r.Mode != ModeCreate && r.Mode != ModeOverwrite && r.Mode != ModeAppend:
		return nil, badField("mode", "expected %q, %q or %q, got %q", ModeCreate, ModeOverwrite, ModeAppend, r.Mode)
	}
	switch r.Encoding {
	case "", UTF8:
		return []byte(*r.Content), nil
	case Base64:
		b, err := base64.StdEncoding.DecodeString(*r.Content)
		if err != nil {
			return nil, badField("content", "expected base64, got other text")
		}
		return b, nil
	}
	return nil, badField("encoding", "expected %q or %q, got %q", UTF8, Base64, r.Encoding)
}

// checkHash compares a file with what the request expects.
func checkHash(c *change, want string) error {
	if want == "" {
		return nil
	}
	got := ""
	if c.exists {
		got = hashOf(c.before)
	}
	if strings.EqualFold(got, want) { // hexadecimal is written either way
		return nil
	}
	e := refuse(Conflict, c.at.path, "%q has not the expected content", c.at.path)
	e.Details["expected_sha256"], e.Details["sha256"] = want, got
	if !c.exists {
		e.Message = fmt.Sprintf("%q was expected to exist", c.at.path)
	}
	return e
}
