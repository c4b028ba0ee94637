/** The error codes of messages and of NATS, a part of `ERROR_CODES`. */
export const MESSAGE_ERROR_CODES = {
  TEMPER_BUS_UNSUPPORTED: {
    meaning: 'The NATS server is older than the oldest supported version.',
    fix: 'Run nats-server 2.14.5 or newer.',
  },
  TEMPER_BUS_UNAVAILABLE: {
    meaning: 'NATS cannot be reached, or did not respond in time. A pending write may have been stored.',
    fix: 'Repeat the call with the same idempotency key; if the error persists, check the connection to NATS.',
  },
  TEMPER_BUS_UNAUTHORIZED: {
    meaning: 'NATS rejected the nkey of the role, or the role lacks a permission.',
    fix: "Compare the server's configuration with the nkey seed of the role.",
  },
  TEMPER_BUS_FULL: {
    meaning: 'A stream or bucket is full: its limit is reached, or its disk is full.',
    fix: 'Wait until messages are consumed, or give NATS a larger volume.',
  },
  TEMPER_BUS_CONSUMER_LIMIT: {
    meaning: 'NATS refuses another consumer: a limit of the account or of the server is too low.',
    fix: 'Raise max_consumers of the NATS account; the log of the operator names the limit.',
  },
  TEMPER_BUS_TOO_LARGE: {
    meaning: 'A message or value exceeds the maximum payload of NATS.',
    fix: 'Send less in one message.',
  },
  TEMPER_MESSAGE_INVALID: {
    meaning:
      'An inbox entry is not a valid message, or it is a call of a program and the pod is of a release that makes none.',
    fix: 'Of a call: replace the pod and retry the entry. Else drop the entry, and find out which other client may publish to the inbox.',
  },
  TEMPER_MESSAGE_UNDELIVERED: {
    meaning: 'The message reached the maximum number of deliveries, and no pod acknowledged it.',
    fix: "Read the log of the agent's pod at that time, then retry or drop the message.",
  },
  TEMPER_MESSAGE_DROPPED: {
    meaning: 'A user dropped a dead-lettered message.',
    fix: 'Send it again if it still matters.',
  },
  TEMPER_SCHEDULE_NOT_SERVED: {
    meaning: 'An agent made a schedule in a run of temper run that starts no runs of schedules.',
    fix: 'Start temper run --serve with the same manifests and the same state folder.',
  },
  TEMPER_SCHEDULE_STOPPED: {
    meaning: 'A schedule starts no further run in this process, because its last five runs failed.',
    fix: 'Correct the cause that the errors of the runs name, then change the spec of the agent; a schedule that an agent made can be deleted and made again.',
  },
  TEMPER_CHILD_REFUSED: {
    meaning:
      'A child agent or a nested agent is not admitted: it asks for more than its parent has, its template is none, or there are too many.',
    fix: 'The message names each field, what the parent has, and the limit; ask for less, or end a child.',
  },
  TEMPER_EVENT_REFUSED: {
    meaning:
      'An event is not accepted: its subject or data is not valid or too large, or it would reach too many agents.',
    fix: 'The message names the rule; publish less data, or under a subject that fewer triggers match.',
  },
  TEMPER_MESSAGE_CYCLE: {
    meaning: 'An agent asked an agent that already waits in the same chain of messages.',
    fix: 'Put the question into the answer, or send it with `agent_send`, which does not wait.',
  },
  TEMPER_MESSAGE_DEPTH: {
    meaning: 'The chain of messages from agent to agent is longer than allowed.',
    fix: 'Reply instead of sending another message, or let the first agent ask each of the others itself.',
  },
  TEMPER_DELIVERY_LOST: {
    meaning:
      'The delivery has ended: it was settled before, or it timed out and the message was redelivered to another pod.',
    fix: 'Nothing; the message is answered once.',
  },
  TEMPER_DELIVERY_TOKEN_INVALID: {
    meaning: 'The delivery token was not issued to this pod by a gateway of this installation.',
    fix: 'Send the delivery token unchanged, as it was received with the message.',
  },
  TEMPER_DELIVERY_TOKEN_EXPIRED: {
    meaning:
      'The deadline of the chain of messages has passed, or the message was settled or redelivered to another pod.',
    fix: 'Stop working on the message and request the next one.',
  },
} as const;
