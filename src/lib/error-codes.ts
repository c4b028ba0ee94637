/**
 * Every public error code, what it means and what to do. `docs/reference/errors.md` is made from this table.
 * A code is never given a second meaning; a retired one stays in `RETIRED_CODES`.
 */
export interface ErrorCodeEntry {
  readonly meaning: string;
  readonly fix: string;
}

export const ERROR_CODES = {
  TEMPER_USAGE: { meaning: 'The command line is not one the program knows.', fix: 'See `temper help VERB`.' },
  TEMPER_CANCELLED: {
    meaning: 'The caller withdrew the call.',
    fix: 'Nothing; call again if the answer is still wanted.',
  },
  TEMPER_TIMEOUT: {
    meaning: 'No answer within the time allowed.',
    fix: 'Ask for less in one call, or raise the limit the message names.',
  },
  TEMPER_INTERNAL: { meaning: 'A defect in Temper itself.', fix: 'Report it with the log lines around it.' },

  TEMPER_MANIFEST_UNREADABLE: {
    meaning: 'A manifest file cannot be read or is not YAML or JSON.',
    fix: 'Correct the place the message names.',
  },
  TEMPER_MANIFEST_INVALID: {
    meaning: 'A manifest breaks a rule of its kind.',
    fix: 'Correct the field the message names.',
  },
  TEMPER_NOT_FOUND: {
    meaning: 'No object of that kind and name exists.',
    fix: 'List what exists with `temper get KIND`.',
  },

  TEMPER_POLICY_DENIED: {
    meaning: 'The TrustPolicy, the grants or the level of the agent do not allow this.',
    fix: 'The message names the rule and what would be allowed; `temper policy explain` shows every rule passed on the way.',
  },
  TEMPER_APPROVAL_DENIED: { meaning: 'A person said no.', fix: 'Do not repeat the call; ask the person.' },
  TEMPER_APPROVAL_TIMEOUT: {
    meaning: 'Nobody decided in time and the policy says that means no.',
    fix: 'Ask for approval again when somebody is there, or change approvals.onTimeout.',
  },
  TEMPER_QUOTA_EXCEEDED: {
    meaning: 'A quota of the agent or of its policy is used up.',
    fix: 'Wait for the window the message names, or raise the quota.',
  },
  TEMPER_LEDGER_UNAVAILABLE: {
    meaning:
      'The counters of what was spent cannot be reached, or were lost and not restored yet. Nothing is spent without them.',
    fix: 'Wait; it is tried again. When it stays, see why the gateway is not connected to NATS.',
  },
  TEMPER_PATTERN_INVALID: {
    meaning: 'A pattern is malformed.',
    fix: 'The message names the character; see the pattern reference.',
  },

  TEMPER_TOOL_NOT_FOUND: {
    meaning: 'No tool of that name is visible to the agent.',
    fix: 'Use a listed tool, or forge one.',
  },
  TEMPER_TOOL_INPUT_INVALID: {
    meaning: 'The arguments break the input schema of the tool.',
    fix: 'Correct the member the message names.',
  },
  TEMPER_TOOL_OUTPUT_INVALID: {
    meaning:
      'The tool answered with something its output schema does not allow. The call failed and counts against the tool.',
    fix: 'Forge a corrected tool.',
  },
  TEMPER_TOOL_FAILED: { meaning: 'The tool ran and failed.', fix: 'The message says why.' },
  TEMPER_TOOL_TIMEOUT: {
    meaning: 'The tool did not answer in time and was stopped.',
    fix: 'Give it less to do in one call.',
  },
  TEMPER_TOOL_RECURSION: {
    meaning: 'Tools called each other deeper than allowed, or in a circle.',
    fix: 'Flatten the chain of calls.',
  },
  TEMPER_LOOP_DETECTED: {
    meaning: 'The same call was repeated without progress.',
    fix: 'Change the arguments or the approach.',
  },

  TEMPER_SANDBOX_UNAVAILABLE: {
    meaning: 'The sandbox cannot start, or its engine is older than the safe version. Nothing is run without it.',
    fix: 'Run `make setup`; see the security page for the required engine.',
  },
  TEMPER_SANDBOX_SYNTAX: {
    meaning: 'The source of a tool does not compile.',
    fix: 'Correct the line the message names.',
  },
  TEMPER_SANDBOX_NO_ENTRY: {
    meaning: 'The source defines neither `execute` nor `run`.',
    fix: 'Define `function execute(input)`.',
  },
  TEMPER_SANDBOX_THREW: { meaning: 'The tool threw.', fix: 'The message is what it threw, cut and cleaned.' },
  TEMPER_SANDBOX_TIMEOUT: {
    meaning: 'The tool used up its time, or waited for something that can never come, and was ended.',
    fix: 'Make it faster, or ask for a longer limit within the policy.',
  },
  TEMPER_SANDBOX_MEMORY: {
    meaning: 'The tool used more memory than its limit and was ended.',
    fix: 'Use less memory, or ask for more within the policy.',
  },
  TEMPER_SANDBOX_OUTPUT_INVALID: {
    meaning: 'The tool returned something that is not a JSON value.',
    fix: 'Return plain data.',
  },
  TEMPER_SANDBOX_OUTPUT_TOO_LARGE: { meaning: 'The result of the tool is larger than the limit.', fix: 'Return less.' },
  TEMPER_SANDBOX_INPUT_TOO_LARGE: { meaning: 'The input is larger than the limit.', fix: 'Pass less in one call.' },
  TEMPER_SANDBOX_CALL_BUDGET: {
    meaning: 'The tool called the host more often, or with more bytes, than allowed.',
    fix: 'Call the host less.',
  },
  TEMPER_SANDBOX_CRASHED: {
    meaning: 'The process that ran the tool ended by itself.',
    fix: 'The tool did something its engine does not survive; write it differently.',
  },

  TEMPER_HOST_CALL_DENIED: {
    meaning: 'The tool asked the host for something it did not declare or the policy does not allow.',
    fix: 'Declare it, within what the policy allows.',
  },
  TEMPER_FETCH_DENIED: {
    meaning: 'The address is not one a tool may reach.',
    fix: 'Use an allowed public host over https.',
  },
  TEMPER_FETCH_FAILED: { meaning: 'The request failed or its answer broke a limit.', fix: 'The message says which.' },
  TEMPER_FILE_DENIED: { meaning: 'The path lies outside the allowed roots.', fix: 'Use a path below the workspace.' },
  TEMPER_FILE_FAILED: {
    meaning: 'The file cannot be read or written, or is too large.',
    fix: 'The message says which.',
  },

  TEMPER_FORGE_DISABLED: {
    meaning: 'The agent, its level or its policy does not allow forging.',
    fix: 'Set spec.forge.enabled, and a TrustPolicy that permits it.',
  },
  TEMPER_FORGE_NO_SESSION: {
    meaning: 'Forging needs a session, and there is none.',
    fix: 'Send the message in a session.',
  },
  TEMPER_FORGE_SHAPE: {
    meaning: 'The forge request lacks a part or has one of the wrong form.',
    fix: 'The message lists every part.',
  },
  TEMPER_FORGE_EXTRA_FIELD: { meaning: 'A schema or request has a member that is not known.', fix: 'Remove it.' },
  TEMPER_FORGE_SYNTAX: { meaning: 'The source does not parse.', fix: 'The message has the line and a hint.' },
  TEMPER_FORGE_STATIC: {
    meaning: 'The source uses something a tool may not use.',
    fix: 'The message lists every place.',
  },
  TEMPER_FORGE_SCHEMA: {
    meaning: 'A schema is too large, too deep, refers outside itself or cannot be compiled safely.',
    fix: 'The message names the place and the limit.',
  },
  TEMPER_FORGE_COMPOSE: {
    meaning: 'A step of a composed tool is unknown, not permitted, recursive or malformed.',
    fix: 'The message names the step.',
  },
  TEMPER_FORGE_TEST_FAILED: {
    meaning: 'A test case gave another output than expected, threw, or ran out of a limit.',
    fix: 'The message has the case, expected and got.',
  },
  TEMPER_FORGE_NONDETERMINISTIC: {
    meaning: 'The same test gave two different outputs.',
    fix: 'Remove what varies, or declare it.',
  },
  TEMPER_FORGE_OUTPUT_SCHEMA: {
    meaning: 'An output breaks the declared output schema.',
    fix: 'The message has the case and the member.',
  },
  TEMPER_FORGE_LIMITS: {
    meaning: 'A test used more time or memory than the policy allows.',
    fix: 'The message has the figures.',
  },
  TEMPER_FORGE_CEILING: {
    meaning: 'The tool asks for more than the policy lets any tool have.',
    fix: 'Ask for less; the message names the ceiling.',
  },
  TEMPER_FORGE_NAME_TAKEN: { meaning: 'Another tool visible to the agent has this name.', fix: 'Choose another name.' },
  TEMPER_FORGE_LIMIT_REACHED: {
    meaning: 'The session or the agent has as many forged tools as allowed.',
    fix: 'Use those there are, or raise forge.limits.',
  },
  TEMPER_JUDGE_UNAVAILABLE: {
    meaning: 'No judge is configured, or it gave no usable answer. Without a judge nothing is accepted.',
    fix: 'Name a judge in TrustPolicy spec.models.judge.',
  },
  TEMPER_JUDGE_REFUSED: { meaning: 'The judge refused the tool.', fix: 'The message has its reasons.' },

  TEMPER_TOOL_DEMOTED: {
    meaning: 'This very tool was taken out of service, by a person or by its own record.',
    fix: 'Forge a corrected one; the same bytes stay out.',
  },
  TEMPER_PROMOTION_NOT_READY: {
    meaning: 'The record of the tool does not meet the rule for the next tier.',
    fix: 'The message lists what is missing.',
  },
  TEMPER_PACKAGE_INVALID: {
    meaning: 'The package is malformed, redacted, or its digest does not match its content.',
    fix: 'Export it again with its source.',
  },
  TEMPER_AUDIT_BROKEN: {
    meaning: 'The provenance record has a gap, an edit or a fork.',
    fix: 'Do not trust tools activated after the named record; restore the file from its copy.',
  },

  TEMPER_MODEL_RATE_LIMITED: {
    meaning: 'The provider asked to slow down.',
    fix: 'Wait; the call is tried again by itself.',
  },
  TEMPER_MODEL_OVERLOADED: { meaning: 'The provider cannot serve now.', fix: 'Wait, or name a fallback model.' },
  TEMPER_MODEL_TIMEOUT: {
    meaning: 'The provider did not answer in time.',
    fix: 'Try again, or name a fallback model.',
  },
  TEMPER_MODEL_UNAUTHORIZED: { meaning: 'The provider refused the key.', fix: 'Renew the key.' },
  TEMPER_MODEL_BILLING: { meaning: 'The account has no credit left.', fix: 'Settle the account with the provider.' },
  TEMPER_MODEL_CONTEXT_OVERFLOW: {
    meaning: 'The conversation does not fit the context window of the model.',
    fix: 'Start a new session or use a model with a larger window.',
  },
  TEMPER_MODEL_FORMAT: {
    meaning: 'The provider refused the request or its answer cannot be read.',
    fix: 'The message has the place.',
  },
  TEMPER_MODEL_NOT_FOUND: { meaning: 'The provider has no such model.', fix: 'Correct spec.model.' },
  TEMPER_MODEL_UNAVAILABLE: {
    meaning: 'No configured provider serves this model, or all failed.',
    fix: 'Configure the provider, or name a fallback.',
  },
  TEMPER_REPLAY_NO_MATCH: {
    meaning: 'No entry of the replay script answers this conversation.',
    fix: 'Add an entry; the message shows the last message.',
  },
  TEMPER_REPLAY_SCRIPT_INVALID: {
    meaning: 'The replay script breaks a rule.',
    fix: 'Correct the line the message names.',
  },

  TEMPER_BUS_UNSUPPORTED: {
    meaning: 'The NATS server is older than the versions without known holes.',
    fix: 'Run nats-server 2.14.5 or newer.',
  },
  TEMPER_BUS_UNAVAILABLE: {
    meaning: 'NATS cannot be reached, or did not answer in time. What was being stored may be stored all the same.',
    fix: 'Repeat the call with the same key; see the condition of the installation if it lasts.',
  },
  TEMPER_BUS_STORE_LOST: {
    meaning: 'NATS lost what it kept, and with it what waited there or was being worked on.',
    fix: 'Send the message again; see why the volume of NATS was lost.',
  },
  TEMPER_BUS_UNAUTHORIZED: {
    meaning: 'NATS refused the key of the role, or what the role wanted to do.',
    fix: "Compare the server's configuration with the seed the role was given.",
  },
  TEMPER_BUS_FULL: {
    meaning: 'A stream or bucket takes no more: its limit is reached, or its disk.',
    fix: 'Wait until something was taken from it, or give NATS a larger store.',
  },
  TEMPER_BUS_TOO_LARGE: {
    meaning: 'A message or value has more bytes than the bus carries.',
    fix: 'Send less at once.',
  },
  TEMPER_MESSAGE_INVALID: {
    meaning: 'What lay in an inbox is no message.',
    fix: 'Find out who may publish there besides Temper; drop it.',
  },
  TEMPER_MESSAGE_UNDELIVERED: {
    meaning: 'A message was delivered as often as allowed and nobody ended it.',
    fix: "Read the log of the agent's pod at that time, then retry the message or drop it.",
  },
  TEMPER_MESSAGE_DROPPED: {
    meaning: 'A person dropped a message that had been given up.',
    fix: 'Send it again if it still matters.',
  },

  TEMPER_MESSAGE_DEPTH: {
    meaning: 'Agents answered messages with messages deeper than allowed.',
    fix: 'Reply instead of sending on, or have the first agent ask each of the others itself.',
  },
  TEMPER_SESSION_INVALID: {
    meaning: 'A message names no session, or one whose id is malformed.',
    fix: 'Send the message in a session; the message says what an id looks like.',
  },
  TEMPER_GATEWAY_UNAVAILABLE: {
    meaning: 'The gateway cannot be reached, or cannot serve now.',
    fix: 'Nothing for a while: the call is tried again by itself. Then look at the pods of the gateway and at the NetworkPolicies.',
  },
  TEMPER_GATEWAY_UNTRUSTED: {
    meaning:
      'What answers at the address of the gateway has no certificate of the installation. No token was sent to it.',
    fix: 'Find out who answers there; the files of /etc/temper/doors say what is expected.',
  },
  TEMPER_GATEWAY_REFUSED: {
    meaning: 'The gateway does not take this pod for the one that is bound to the agent, or does not let it do this.',
    fix: 'A pod that was replaced ends by itself; otherwise compare Agent.status.pod with the pod.',
  },
  TEMPER_GATEWAY_ANSWER: {
    meaning: 'An answer of the gateway is malformed or larger than allowed.',
    fix: 'Let pod and gateway be of the same version.',
  },
  TEMPER_EGRESS_UNAVAILABLE: {
    meaning: 'The tool wants to reach another host, and pods have no way out of the cluster.',
    fix: 'Forge a tool that needs no network.',
  },
  TEMPER_LEASE_LOST: {
    meaning: 'The delivery is over: it was settled before, or its time ran out and the message went to another pod.',
    fix: 'Nothing; the message is answered once.',
  },
  TEMPER_POD_INVALID: {
    meaning: 'The pod is not made as its containers need it: a folder, a file or its owner is wrong.',
    fix: 'The message names it; see the reference page of the pod.',
  },

  TEMPER_TURN_LIMIT: {
    meaning: 'The agent used all its model turns for one message.',
    fix: 'Ask for less at once, or raise the limit.',
  },
  TEMPER_STEP_LIMIT: {
    meaning: 'The agent used all its tool calls for one message.',
    fix: 'Ask for less at once, or raise the limit.',
  },

  TEMPER_KUBE_CONFIG: {
    meaning: 'No cluster can be read from the kubeconfig or the ServiceAccount of the pod.',
    fix: 'Set KUBECONFIG or name the file and context; the message says what is missing.',
  },
  TEMPER_KUBE_UNREACHABLE: {
    meaning: 'The API server did not answer, or its answer cannot be read.',
    fix: 'Check the address, the network and the certificate authority the message names.',
  },
  TEMPER_CLUSTER_FORBIDDEN: {
    meaning: 'The cluster does not let you do this: RBAC or an admission policy says no.',
    fix: 'The message names the right that is missing, or the rule; ask whoever administers the namespace.',
  },
  TEMPER_CLUSTER_REFUSED: {
    meaning: 'The API server understood the request and refused it.',
    fix: 'Do what the message says; it is in the words of the API server.',
  },
  TEMPER_GATEWAY_UNREACHABLE: {
    meaning: 'The gateway does not answer through the API server.',
    fix: 'Look at the gateway with `temper check`; the message says how it failed.',
  },
  TEMPER_NOT_LEADER: {
    meaning: 'A process that does not lead tried to write. Nothing was written.',
    fix: 'Nothing; the process that leads does the work.',
  },
  TEMPER_LEADERSHIP_LOST: {
    meaning: 'The process led and could not renew its Lease in time; another one may lead now.',
    fix: 'The process ends and is started again. If it happens often, look at the load of the API server and the CPU limit.',
  },
  TEMPER_TOKEN_INVALID: {
    meaning: 'The token is none that this gateway takes: not signed by the cluster, over, or not of the right account.',
    fix: 'A pod reads its token again from the mounted file; people get a new one with every command.',
  },
  TEMPER_TOKEN_AUDIENCE: {
    meaning: 'The token was made for another door.',
    fix: 'Ask for a token with the one audience of this door.',
  },
  TEMPER_POD_UNKNOWN: {
    meaning: 'The API server knows no such agent pod.',
    fix: 'The pod was deleted; its token is of no use any more.',
  },
  TEMPER_POD_STARTING: {
    meaning: 'The API server has not told the address of the pod yet.',
    fix: 'Ask again after the time the answer says.',
  },
  TEMPER_POD_ADDRESS: {
    meaning: 'The request does not come from the address of the pod whose token it carries.',
    fix: 'Nothing between pod and gateway may translate addresses; tokens do not leave their pod.',
  },
  TEMPER_POD_NOT_BOUND: {
    meaning: 'No agent is bound to the pod: it is still warm, or was replaced.',
    fix: 'A warm pod asks for its assignment; a replaced one ends.',
  },
  TEMPER_POD_BOUND_TWICE: {
    meaning: 'Two agents claim the same pod, so neither is believed.',
    fix: 'Look at status.pod of the agents the log names; only the operator may write it.',
  },
  TEMPER_LEASE_INVALID: {
    meaning: 'The lease was not given to this pod by a gateway of this installation.',
    fix: 'Use the lease of the delivery as it was received.',
  },
  TEMPER_LEASE_EXPIRED: {
    meaning: 'The time of the chain of messages is over, or the message was settled or given to another pod.',
    fix: 'Stop working on the message and ask for the next one.',
  },
  TEMPER_AGENT_SUSPENDED: {
    meaning: 'The agent, or its policy for all its agents, was told to stop.',
    fix: 'Wait; messages are kept. `kubectl temper resume` lets it go on.',
  },
  TEMPER_REQUEST_INVALID: {
    meaning: 'The request breaks the schema of its route.',
    fix: 'Correct the field the message names; see `/v1/openapi.json`.',
  },
  TEMPER_REQUEST_TOO_LARGE: {
    meaning: 'The body of the request is larger than its route takes.',
    fix: 'Send less in one call.',
  },
  TEMPER_RATE_LIMITED: {
    meaning: 'The caller has used its share of the gateway for the moment.',
    fix: 'Wait as long as the answer says.',
  },
  TEMPER_OVERLOADED: {
    meaning: 'The gateway has more to do than it can, or is about to end.',
    fix: 'Try again after the time the answer says; another replica may answer.',
  },
  TEMPER_CONFIGURATION_INVALID: {
    meaning: 'The configuration file of a role breaks a rule.',
    fix: 'Correct the field the message names.',
  },

  TEMPER_STATE_LOCKED: {
    meaning: 'Another process holds the state folder.',
    fix: 'Wait for it to end; the message has its process id.',
  },
  TEMPER_STATE_CORRUPT: {
    meaning: 'A file of the state folder cannot be read.',
    fix: 'Restore the named file, or move it away.',
  },
} as const satisfies Record<string, ErrorCodeEntry>;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);
}
