// franz-go behind lines of JSON; behaviours/program.py has the table of requests.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
)

type fields struct {
	Id              int               `json:"id"`
	Do              string            `json:"do"`
	On              *int              `json:"on"`
	Bootstrap       string            `json:"bootstrap"`
	Acks            int               `json:"acks"`
	IsIdempotent    bool              `json:"is_idempotent"`
	Codec           string            `json:"codec"`
	LingerMs        int               `json:"linger_ms"`
	RequestBytesMax int32             `json:"request_bytes_max"`
	Topic           string            `json:"topic"`
	Value           []byte            `json:"value"`
	Key             []byte            `json:"key"`
	Headers         [][2]*string      `json:"headers"`
	Partition       *int32            `json:"partition"`
	Partitions      []int32           `json:"partitions"`
	TimestampMs     *int64            `json:"timestamp_ms"`
	WaitMsMax       int               `json:"wait_ms_max"`
	BytesMax        int32             `json:"bytes_max"`
	Offset          int64             `json:"offset"`
	Ms              int               `json:"ms"`
	Group           string            `json:"group"`
	SessionMs       *int              `json:"session_ms"`
	Protocol        string            `json:"protocol"`
	Instance        *string           `json:"instance"`
	PartitionCount  int               `json:"partition_count"`
	Config          map[string]string `json:"config"`
	Before          int64             `json:"before"`
	TransactionalId *string           `json:"transactional_id"`
	Login           *login            `json:"login"`
	Mode            string            `json:"mode"`
	RecordsMax      *int32            `json:"records_max"`
	Type            int8              `json:"type"`
}

// later is answered when the outcome is known.
type later func(answer func(ok any, err error))

type handle interface {
	take(request fields) (any, error)
}

type opened struct {
	requests chan fields
}

var output struct {
	sync.Mutex
	*bufio.Writer
}

func main() {
	output.Writer = bufio.NewWriter(os.Stdout)
	handles := map[int]*opened{}
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var request fields
		if err := json.Unmarshal(line, &request); err != nil {
			panic(err)
		}
		if request.On != nil {
			handles[*request.On].requests <- request
			continue
		}
		made, err := open(request)
		if err != nil {
			answer(request.Id, nil, err)
			continue
		}
		number := len(handles) + 1
		handles[number] = &opened{make(chan fields, 100_000)}
		go serve(made, handles[number].requests)
		answer(request.Id, number, nil)
	}
}

func open(request fields) (handle, error) {
	switch request.Do {
	case "producer":
		return newProducer(request)
	case "consumer":
		return newConsumer(request)
	case "member":
		return newMember(request)
	case "sharer":
		return newSharer(request)
	case "admin":
		return newAdmin(request)
	}
	return nil, fmt.Errorf("no %s", request.Do)
}

func serve(on handle, requests chan fields) {
	for request := range requests {
		ok, err := on.take(request)
		if wait, is := ok.(later); is {
			id := request.Id
			wait(func(ok any, err error) { answer(id, ok, err) })
			continue
		}
		answer(request.Id, ok, err)
	}
}

func answer(id int, ok any, err error) {
	line := map[string]any{"id": id}
	var refused *kerr.Error
	switch {
	case err == nil:
		line["ok"] = ok
	case errors.As(err, &refused):
		line["refused"] = []any{refused.Code, err.Error()}
	default:
		line["broken"] = err.Error()
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	output.Write(append(text, '\n'))
	output.Flush()
}
