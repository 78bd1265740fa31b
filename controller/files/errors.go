package files

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Code is a stable word for a refusal (worker.md row 17).
type Code string

// Codes of this package.
const (
	InvalidRequest   Code = "INVALID_REQUEST"
	PathNotAllowed   Code = "PATH_NOT_ALLOWED"
	NotFound         Code = "FILE_NOT_FOUND"
	NotAFile         Code = "NOT_A_FILE"
	TooLarge         Code = "FILE_TOO_LARGE"
	PermissionDenied Code = "PERMISSION_DENIED"
	Conflict         Code = "CONFLICT"
	PatchFailed      Code = "PATCH_FAILED"
	Internal         Code = "INTERNAL"
)

// Error is a refusal. Details name the field or path.
type Error struct {
	Code    Code
	Message string
	Details map[string]any
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

func refuse(code Code, path, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Details: map[string]any{"path": path}}
}

func badField(field, format string, args ...any) *Error {
	return &Error{Code: InvalidRequest, Message: field + ": " + fmt.Sprintf(format, args...), Details: map[string]any{"field": field}}
}

// How packages os and path/filepath say that a path leads out of a root, or in
// circles; they have no values for it.
const (
	escapes      = "path escapes from parent"
	tooManyLinks = "too many links"
)

// fromOS turns an error of the operating system into a refusal.
func fromOS(path string, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return refuse(NotFound, path, "there is no file %q", path)
	case strings.Contains(err.Error(), escapes), strings.Contains(err.Error(), tooManyLinks), errors.Is(err, syscall.ELOOP):
		return refuse(PathNotAllowed, path, "%q leads out of the allowed roots", path)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return refuse(PermissionDenied, path, "no permission for %q", path)
	case errors.Is(err, fs.ErrExist):
		return refuse(Conflict, path, "%q exists already", path)
	}
	return refuse(Internal, path, "%q: %s", path, reason(err))
}

// reason is the cause without the paths that package os puts around it.
func reason(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
