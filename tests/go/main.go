// One client of centrifuge-go, driven over standard input and output.
//
// The argument is JSON: url, token, protobuf. Each line of input is a command, {"do": "subscribe",
// "channel": "news"}. Each line of output is an event, {"event": "publication", ...}, or the answer
// to a command, {"event": "answer", ...}. When the client wants a token it tells {"event": "token"}
// and takes the next command "token"; {"event": "state"} is the same for a position. The program ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/centrifugal/centrifuge-go"
)

const (
	patience      = 20 * time.Second
	shortestDelay = 20 * time.Millisecond
	longestDelay  = 100 * time.Millisecond
)

type arguments struct {
	URL      string `json:"url"`
	Token    string `json:"token"`
	Protobuf bool   `json:"protobuf"`
}

type command struct {
	Do      string          `json:"do"`
	Channel string          `json:"channel"`
	Data    json.RawMessage `json:"data"`
	Token   string          `json:"token"`
	Limit   int32           `json:"limit"`
	Reverse bool            `json:"reverse"`
	Since   *position       `json:"since"`
	State   *position       `json:"state"`
	Asks    bool            `json:"asks_state"`
	Delta   string          `json:"delta"`
	Teams   []string        `json:"teams"`
}

type position struct {
	Offset uint64 `json:"offset"`
	Epoch  string `json:"epoch"`
}

type details map[string]any

var writing sync.Mutex

func tell(event string, what details) {
	what["event"] = event
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	writing.Lock()
	defer writing.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

type driver struct {
	client *centrifuge.Client
	tokens chan string
	states chan position
}

func (d *driver) token() (string, error) {
	tell("token", details{})
	select {
	case token := <-d.tokens:
		return token, nil
	case <-time.After(patience):
		return "", errors.New("nobody gave a token")
	}
}

func (d *driver) state(e centrifuge.SubscriptionGetStateEvent) (centrifuge.StreamPosition, error) {
	tell("state", details{"channel": e.Channel})
	select {
	case found := <-d.states:
		return centrifuge.StreamPosition{Offset: found.Offset, Epoch: found.Epoch}, nil
	case <-time.After(patience):
		return centrifuge.StreamPosition{}, errors.New("nobody gave a position")
	}
}

func open(given arguments) *driver {
	d := &driver{tokens: make(chan string, 1), states: make(chan position, 1)}
	config := centrifuge.Config{
		Token:             given.Token,
		GetToken:          func(centrifuge.ConnectionTokenEvent) (string, error) { return d.token() },
		ReadTimeout:       patience,
		WriteTimeout:      patience,
		HandshakeTimeout:  patience,
		MinReconnectDelay: shortestDelay,
		MaxReconnectDelay: longestDelay,
	}
	if given.Protobuf {
		d.client = centrifuge.NewProtobufClient(given.URL, config)
	} else {
		d.client = centrifuge.NewJsonClient(given.URL, config)
	}
	d.client.OnConnecting(func(e centrifuge.ConnectingEvent) {
		tell("connecting", details{"code": e.Code})
	})
	d.client.OnConnected(func(e centrifuge.ConnectedEvent) {
		tell("connected", details{"client": e.ClientID, "data": json.RawMessage(orNull(e.Data))})
	})
	d.client.OnDisconnected(func(e centrifuge.DisconnectedEvent) {
		tell("disconnected", details{"code": e.Code, "reason": e.Reason})
	})
	d.client.OnSubscribed(func(e centrifuge.ServerSubscribedEvent) {
		tell("subscribed", details{"channel": e.Channel, "was_recovering": e.WasRecovering, "recovered": e.Recovered})
	})
	d.client.OnUnsubscribed(func(e centrifuge.ServerUnsubscribedEvent) {
		tell("unsubscribed", details{"channel": e.Channel})
	})
	d.client.OnJoin(func(e centrifuge.ServerJoinEvent) {
		tell("join", details{"channel": e.Channel, "client": e.Client})
	})
	d.client.OnPublication(func(e centrifuge.ServerPublicationEvent) {
		tell("publication", details{"channel": e.Channel, "data": json.RawMessage(e.Data)})
	})
	return d
}

func (d *driver) subscribe(given command) error {
	channel := given.Channel
	config := centrifuge.SubscriptionConfig{
		MinResubscribeDelay: shortestDelay,
		MaxResubscribeDelay: longestDelay,
		Delta:               centrifuge.DeltaType(given.Delta),
		Token:               given.Token,
	}
	if given.Asks {
		config.GetState = d.state
	}
	if given.Teams != nil {
		config.TagsFilter = centrifuge.FilterAnd(centrifuge.FilterIn("team", given.Teams...))
	}
	subscription, err := d.client.NewSubscription(channel, config)
	if err != nil {
		return err
	}
	subscription.OnSubscribed(func(e centrifuge.SubscribedEvent) {
		tell("subscribed", details{"channel": channel, "was_recovering": e.WasRecovering, "recovered": e.Recovered})
	})
	subscription.OnUnsubscribed(func(e centrifuge.UnsubscribedEvent) {
		tell("unsubscribed", details{"channel": channel, "code": e.Code, "reason": e.Reason})
	})
	subscription.OnPublication(func(e centrifuge.PublicationEvent) {
		told := details{"channel": channel, "data": json.RawMessage(e.Data), "offset": e.Offset}
		if e.Info != nil {
			told["info"] = json.RawMessage(orNull(e.Info.ConnInfo))
		}
		tell("publication", told)
	})
	subscription.OnJoin(func(e centrifuge.JoinEvent) {
		tell("join", details{"channel": channel, "client": e.Client, "user": e.User})
	})
	subscription.OnLeave(func(e centrifuge.LeaveEvent) {
		tell("leave", details{"channel": channel, "client": e.Client, "user": e.User})
	})
	return subscription.Subscribe()
}

func (d *driver) run(given command) (details, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch given.Do {
	case "connect":
		return details{}, d.client.Connect()
	case "disconnect":
		return details{}, d.client.Disconnect()
	case "subscribe":
		return details{}, d.subscribe(given)
	case "subscribe_again":
		subscription, _ := d.client.GetSubscription(given.Channel)
		return details{}, subscription.Subscribe()
	case "unsubscribe":
		subscription, _ := d.client.GetSubscription(given.Channel)
		return details{}, subscription.Unsubscribe()
	case "publish":
		_, err := d.client.Publish(ctx, given.Channel, given.Data)
		return details{}, err
	case "presence":
		result, err := d.client.Presence(ctx, given.Channel)
		users := details{}
		for client, info := range result.Clients {
			users[client] = info.User
		}
		return details{"users": users}, err
	case "presence_stats":
		result, err := d.client.PresenceStats(ctx, given.Channel)
		return details{"clients": result.NumClients, "users": result.NumUsers}, err
	case "history":
		options := []centrifuge.HistoryOption{
			centrifuge.WithHistoryLimit(given.Limit), centrifuge.WithHistoryReverse(given.Reverse),
		}
		if given.Since != nil {
			since := centrifuge.StreamPosition{Offset: given.Since.Offset, Epoch: given.Since.Epoch}
			options = append(options, centrifuge.WithHistorySince(&since))
		}
		result, err := d.client.History(ctx, given.Channel, options...)
		values := []json.RawMessage{}
		for _, publication := range result.Publications {
			values = append(values, publication.Data)
		}
		return details{"values": values, "offset": result.Offset, "epoch": result.Epoch}, err
	case "rpc":
		_, err := d.client.RPC(ctx, "", []byte("null"))
		return details{}, err
	}
	return nil, errors.New("no such command: " + given.Do)
}

func orNull(data []byte) []byte {
	if len(data) == 0 {
		return []byte("null")
	}
	return data
}

func (d *driver) answer(given command) {
	result, err := d.run(given)
	if err != nil {
		result = details{"error": err.Error()}
		var refused *centrifuge.Error
		if errors.As(err, &refused) {
			result["code"] = refused.Code
		}
	}
	tell("answer", result)
}

func main() {
	var given arguments
	if err := json.Unmarshal([]byte(os.Args[1]), &given); err != nil {
		panic(err)
	}
	d := open(given)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var next command
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			panic(err)
		}
		if next.Do == "token" {
			d.tokens <- next.Token
		} else if next.Do == "state" {
			d.states <- *next.State
		} else {
			d.answer(next)
		}
	}
	d.client.Close()
}
