package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/user"
	"sort"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"xce.example/apiserver/auth"
	"xce.example/apiserver/model"
)

const (
	maxScriptBytes = 1 << 20 // XCE_MAX_SCRIPT_BYTES
	keyPrefix      = "rest:" // Idempotency-Keys among the submit keys of the cluster
)

// arrayField takes "0-99%4" or [0, 1, 5].
type arrayField struct {
	indices []uint32
	limit   uint32
}

// Schema tells huma about the two forms.
func (arrayField) Schema(huma.Registry) *huma.Schema {
	zero := 0.0
	return &huma.Schema{
		Description: `array indices: "0-9", "1,3,5", "0-99%4" (at most 4 at once), or a list of numbers`,
		OneOf:       []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeInteger, Minimum: &zero}}},
	}
}

func (a *arrayField) UnmarshalJSON(data []byte) (err error) {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		a.indices, a.limit, err = model.ParseArray(text)
		return err
	}
	if err := json.Unmarshal(data, &a.indices); err != nil {
		return model.Invalid(`array must be text such as "0-9" or a list of whole numbers below 4294967296`)
	}
	a.indices, err = model.SortIndices(a.indices)
	return err
}

// envField takes {"KEY": "VALUE"} or ["KEY=VALUE"].
type envField []string

// Schema tells huma about the two forms.
func (envField) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	return &huma.Schema{
		Description: `environment: {"KEY": "VALUE"} or ["KEY=VALUE"]`,
		OneOf:       []*huma.Schema{{Type: huma.TypeObject, AdditionalProperties: text}, {Type: huma.TypeArray, Items: text}},
	}
}

func (e *envField) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var pairs map[string]string
		if err := json.Unmarshal(data, &pairs); err != nil {
			return err
		}
		for key, value := range pairs {
			*e = append(*e, key+"="+value)
		}
		sort.Strings(*e)
		return nil
	}
	return json.Unmarshal(data, (*[]string)(e))
}

type submitBody struct {
	Name         string             `json:"name,omitempty" maxLength:"1024"`
	User         string             `json:"user,omitempty" maxLength:"63" doc:"who it runs as; default: yourself; only an administrator may name another"`
	Queue        string             `json:"queue,omitempty" maxLength:"255" doc:"default: the default queue"`
	Command      []string           `json:"command,omitempty" doc:"program and arguments; either this or script"`
	Script       string             `json:"script,omitempty" doc:"a script that begins with #!"`
	Args         []string           `json:"args,omitempty" doc:"arguments of the script"`
	Env          envField           `json:"env,omitempty"`
	WorkDir      string             `json:"work_dir,omitempty" maxLength:"4095" doc:"absolute path; default: the user's home folder"`
	StdinPath    string             `json:"stdin_path,omitempty" maxLength:"4095"`
	StdoutPath   string             `json:"stdout_path,omitempty" maxLength:"4095" doc:"patterns %j job, %A array, %a index, %x name, %u user; default xce-%j.out"`
	StderrPath   string             `json:"stderr_path,omitempty" maxLength:"4095" doc:"default: as stdout_path"`
	CPUs         uint32             `json:"cpus,omitempty" minimum:"1" doc:"a host; default 1"`
	MemoryMB     uint64             `json:"memory_mb,omitempty" maximum:"1152921504606846976" doc:"a host"`
	Gres         map[string]uint32  `json:"gres,omitempty" doc:"generic resources a host, such as {\"gpu\": 2}"`
	Nodes        uint32             `json:"nodes,omitempty" minimum:"1" doc:"hosts; default 1"`
	Exclusive    bool               `json:"exclusive,omitempty" doc:"share its hosts with no other job"`
	Hold         bool               `json:"hold,omitempty" doc:"wait until released"`
	Requeue      bool               `json:"requeue,omitempty" doc:"may be started again when its host is lost"`
	TimeLimitS   uint32             `json:"time_limit_s,omitempty" doc:"0: the queue's default"`
	WarnSignal   uint32             `json:"warn_signal,omitempty" maximum:"64"`
	WarnBeforeS  uint32             `json:"warn_before_s,omitempty"`
	Priority     int32              `json:"priority,omitempty"`
	Array        *arrayField        `json:"array,omitempty"`
	ArrayLimit   uint32             `json:"array_limit,omitempty" doc:"tasks that may run at once; 0: any"`
	Dependencies []model.Dependency `json:"dependencies,omitempty"`
	StepOf       uint64             `json:"step_of,omitempty" doc:"run inside this running job: at once, with what it has, no longer than it"`
	StepHosts    []string           `json:"step_hosts,omitempty" doc:"with step_of: on these hosts of that job, or \"*\" for each; none: on its first"`
	Comment      string             `json:"comment,omitempty" maxLength:"4096"`
}

type submitInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"chosen by the caller, one a job; the same request with the same key makes no second job"`
	Body           submitBody
}

type submitted struct {
	ID       uint64  `json:"id" doc:"the job, or the first task of the array"`
	ArrayID  *uint64 `json:"array_id"`
	Count    uint32  `json:"count" doc:"jobs that were made"`
	Existing bool    `json:"existing" doc:"an earlier request with this Idempotency-Key had made it"`
}

type submitOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     submitted
}

func (s *Server) submitJob(ctx context.Context, in *submitInput) (*submitOutput, error) {
	repeatable := in.IdempotencyKey != ""
	spec, err := specOf(ctx, &in.Body)
	if err != nil {
		return nil, problemOf(ctx, err, repeatable)
	}
	if repeatable {
		if !isToken(in.IdempotencyKey, 255) {
			return nil, problemOf(ctx, model.Invalid("Idempotency-Key must be 1 to 255 visible ASCII characters"), false)
		}
		spec.SubmitKey = keyPrefix + in.IdempotencyKey
	}
	done, err := s.backend.SubmitJob(ctx, spec)
	var e *model.Error
	if errors.As(err, &e) && e.Status == model.StatusDupJob && repeatable {
		done, err = repetition(ctx, e)
	}
	if err != nil {
		p := problemOf(ctx, err, repeatable)
		if p.Status == http.StatusNotFound { // a queue or a job that the body names
			p.Status, p.Title = http.StatusBadRequest, http.StatusText(http.StatusBadRequest)
		}
		return nil, p
	}
	out := &submitOutput{Status: http.StatusCreated, Location: "/api/v1/jobs/" + strconv.FormatUint(done.JobID, 10),
		Body: submitted{ID: done.JobID, Count: max(1, done.Count), Existing: done.Existing}}
	if done.Existing {
		out.Status = http.StatusOK
	}
	if spec.StepOf != 0 && done.Count > 1 {
		out.Body.ArrayID = &out.Body.ID
	}
	if len(spec.Array) > 0 {
		out.Body.ArrayID = &out.Body.ID
		out.Body.Count = uint32(len(spec.Array))
	}
	return out, nil
}

// repetition decides what a used Idempotency-Key means: the job that is there when it was the same request, else a refusal. The controllers
// keep what was asked for beside the key, so this holds over the death of any server.
func repetition(ctx context.Context, dup *model.Error) (model.Submitted, error) {
	if dup.SameBody {
		return model.Submitted{JobID: dup.JobID, Count: 1, Existing: true}, nil
	}
	p := newProblem(http.StatusUnprocessableEntity, "E_XCE_DUP_JOB",
		fmt.Sprintf("this Idempotency-Key was used for another request, which made job %d; use a new key for a new job", dup.JobID), requestID(ctx))
	p.JobID = dup.JobID
	return model.Submitted{}, p
}

// specOf checks what the schema cannot say and makes the submission.
func specOf(ctx context.Context, b *submitBody) (model.JobSpec, error) {
	spec := model.JobSpec{
		Name: b.Name, User: b.User, Queue: b.Queue, Script: b.Script, Args: b.Args, Env: b.Env, WorkDir: b.WorkDir, StdinPath: b.StdinPath,
		StdoutPath: b.StdoutPath, StderrPath: b.StderrPath, CPUs: max(1, b.CPUs), MemoryMB: b.MemoryMB, Gres: b.Gres, Nodes: max(1, b.Nodes), Exclusive: b.Exclusive,
		Hold: b.Hold, Requeue: b.Requeue, TimeLimitS: b.TimeLimitS, WarnSignal: b.WarnSignal, WarnBeforeS: b.WarnBeforeS, Priority: b.Priority,
		ArrayLimit: b.ArrayLimit, Dependencies: b.Dependencies, Comment: b.Comment, StepOf: b.StepOf, StepHosts: b.StepHosts,
	}
	switch {
	case len(b.Command) == 0 && b.Script == "":
		return spec, model.Invalid(`nothing to run: give command, such as ["sleep", "10"], or script`)
	case len(b.Command) > 0 && b.Script != "":
		return spec, model.Invalid("give either command or script, not both")
	case len(b.Command) > 0 && len(b.Args) > 0:
		return spec, model.Invalid("args are a script's; put those of command into command")
	case len(b.Command) > 0 && b.Command[0] == "":
		return spec, model.Invalid("the first word of command is the program; it is empty")
	case b.Script != "" && !strings.HasPrefix(b.Script, "#!"):
		return spec, model.Invalid("script must begin with a #! line, such as #!/bin/sh")
	case len(b.Script) > maxScriptBytes:
		return spec, model.Invalid("script has %d bytes; at most %d are allowed", len(b.Script), maxScriptBytes)
	case b.WorkDir != "" && !strings.HasPrefix(b.WorkDir, "/"):
		return spec, model.Invalid("work_dir must be an absolute path")
	case b.StepOf == 0 && len(b.StepHosts) > 0:
		return spec, model.Invalid("step_hosts are of the job that step_of names")
	}
	if len(b.Command) > 0 {
		spec.Args = b.Command
		if spec.Name == "" {
			spec.Name = b.Command[0][strings.LastIndexByte(b.Command[0], '/')+1:]
		}
	}
	if b.Array != nil {
		if len(b.Array.indices) == 0 {
			return spec, model.Invalid("array has no indices")
		}
		spec.Array = b.Array.indices
		if spec.ArrayLimit == 0 {
			spec.ArrayLimit = b.Array.limit
		}
	}
	for _, pair := range spec.Env {
		if strings.IndexByte(pair, '=') < 1 {
			return spec, model.Invalid("env: %q is not KEY=VALUE", pair)
		}
	}
	for _, d := range spec.Dependencies {
		if (d.JobID == 0) != (d.Kind == "singleton") {
			return spec, model.Invalid("a dependency needs a job_id, unless it is singleton, which has none")
		}
	}
	if err := noZeroBytes(&spec); err != nil {
		return spec, err
	}
	return spec, setUser(ctx, &spec)
}

// noZeroBytes refuses what C strings cannot hold.
func noZeroBytes(spec *model.JobSpec) error {
	texts := []string{spec.Name, spec.User, spec.Queue, spec.WorkDir, spec.StdinPath, spec.StdoutPath, spec.StderrPath, spec.Comment}
	texts = append(append(append(texts, spec.Args...), spec.Env...), spec.StepHosts...)
	for name := range spec.Gres {
		texts = append(texts, name)
	}
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return model.Invalid("text must not contain a zero byte (only script may)")
		}
	}
	return nil
}

// setUser says whose job it is: the person's own, whom an administrator may choose. Users are looked up here, so that a name without a user
// id never becomes user id 0.
func setUser(ctx context.Context, spec *model.JobSpec) error {
	person := model.PersonOf(ctx)
	if person == nil {
		return &model.Error{Status: model.StatusAuth, Code: "E_XCE_AUTH", Message: "nobody has said who asks", Outcome: model.NotApplied}
	}
	if spec.User == "" || spec.User == person.User {
		if !person.IDsKnown {
			return &model.Error{Status: model.StatusPerm, Code: "E_XCE_PERM", Outcome: model.NotApplied, Message: fmt.Sprintf(
				"user %q is not known on the apiserver's host: the token must say xce_uid and xce_gid", person.User)}
		}
		spec.User, spec.UID, spec.GID = person.User, person.UID, person.GID
		return nil
	}
	if person.Role < model.Admin {
		return &model.Error{Status: model.StatusPerm, Code: "E_XCE_PERM", Outcome: model.NotApplied, Message: fmt.Sprintf(
			"%s may not submit for %s: only an administrator may", person.User, spec.User)}
	}
	who, err := user.Lookup(spec.User)
	if err != nil {
		return model.Invalid("user %q is not known on the apiserver's host", spec.User)
	}
	uid, gid, ok := auth.IDs(who)
	if !ok {
		return model.Invalid("user %q has no numeric ids", who.Username)
	}
	spec.User, spec.UID, spec.GID = who.Username, uid, gid
	return nil
}
