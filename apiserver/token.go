package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"xce.example/apiserver/auth"
)

const tokenHelp = `xce_apiserver token: prints a bearer token for the REST interface.

  --key FILE       what it is signed with: a secret, or a private key in PEM (RSA, EC, Ed25519), unreadable to others
  --user NAME      whose token it is
  --role ROLE      viewer (looks), user (and has jobs of their own), admin (everything)
  --hours N        how long it is good for (default 12)
  --uid N --gid N  the user's numbers, where the apiserver's host does not know them
  --issuer NAME    what --auth-issuer asks for; --audience NAME: what --auth-audience asks for

Example:
  openssl rand -base64 48 > token.key && chmod 600 token.key
  xce_apiserver --auth-key token.key &
  TOKEN=$(xce_apiserver token --key token.key --user "$USER" --role user)
  curl -s -H "Authorization: Bearer $TOKEN" http://127.0.0.1:9980/api/v1/jobs
`

// issueToken prints a token. The key is read from its file only.
func issueToken(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("token", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	var wish auth.Wish
	key := flags.String("key", "", "")
	hours := flags.Float64("hours", 12, "")
	uid, gid := flags.Int64("uid", -1, ""), flags.Int64("gid", -1, "")
	flags.StringVar(&wish.User, "user", "", "")
	flags.StringVar(&wish.Role, "role", "", "")
	flags.StringVar(&wish.Issuer, "issuer", "", "")
	flags.StringVar(&wish.Audience, "audience", "", "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, tokenHelp)
		return nil
	case err != nil:
		return fmt.Errorf("%w; xce_apiserver token --help lists the flags", err)
	case flags.NArg() > 0 || *key == "":
		return errors.New("token: give --key FILE, --user NAME and --role ROLE; xce_apiserver token --help tells more")
	}
	for number, to := range map[*int64]**uint32{uid: &wish.UID, gid: &wish.GID} {
		if *number > 1<<32-1 {
			return errors.New("--uid and --gid are below 4294967296")
		}
		if *number >= 0 {
			value := uint32(*number)
			*to = &value
		}
	}
	wish.For = time.Duration(*hours * float64(time.Hour))
	token, err := auth.Issue(*key, wish, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, token)
	return nil
}
