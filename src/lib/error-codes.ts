import { MESSAGE_ERROR_CODES } from './error-codes/messages.ts';
import { MODEL_ERROR_CODES } from './error-codes/models.ts';
import { OCI_ERROR_CODES } from './error-codes/oci.ts';
import { LOOP_ERROR_CODES } from './error-codes/loop.ts';
import { SOURCE_ERROR_CODES } from './error-codes/sources.ts';
import { WEB_ERROR_CODES } from './error-codes/web.ts';
import { STATE_ERROR_CODES } from './error-codes/state-folder.ts';

/**
 * Every public error code, its meaning and the fix. `make generate` writes `docs/reference/errors.md` from this table.
 * A code never gets a second meaning.
 */
export interface ErrorCodeEntry {
  readonly meaning: string;
  readonly fix: string;
}

export const ERROR_CODES = {
  TEMPER_USAGE: { meaning: 'The command line is invalid.', fix: 'See `temper help VERB`.' },
  TEMPER_CANCELLED: {
    meaning: 'The caller cancelled the request.',
    fix: 'Nothing; repeat the request if the result is still needed.',
  },
  TEMPER_TIMEOUT: {
    meaning: 'No response arrived within the timeout.',
    fix: 'Ask for less in one call, or raise the limit the message names.',
  },
  TEMPER_INTERNAL: { meaning: 'A defect in Temper itself.', fix: 'Report it with the log lines around it.' },

  TEMPER_MANIFEST_UNREADABLE: {
    meaning: 'A manifest file cannot be read or is not YAML or JSON.',
    fix: 'Correct the file at the location that the message names.',
  },
  TEMPER_MANIFEST_INVALID: {
    meaning: 'A manifest breaks a rule of its kind.',
    fix: 'Correct the field the message names.',
  },
  TEMPER_OUTPUT_FAILED: {
    meaning: 'The standard output of the command cannot be written, for example because the disk is full.',
    fix: 'Free disk space, or redirect the output to another file.',
  },
  TEMPER_NOT_FOUND: {
    meaning: 'No object of that kind and name exists.',
    fix: 'List what exists with `temper get KIND`.',
  },

  TEMPER_POLICY_DENIED: {
    meaning: 'The TrustPolicy, the grants or the level of the agent do not allow this.',
    fix: 'The message names the rule and what would be allowed; `temper policy explain` shows every rule that was evaluated.',
  },
  TEMPER_APPROVAL_DENIED: {
    meaning: 'An approver denied the request.',
    fix: 'Do not repeat the call; ask the approver.',
  },
  TEMPER_APPROVAL_TIMEOUT: {
    meaning: 'No approver decided in time, and the policy treats a timeout as a denial.',
    fix: 'Request the approval again when an approver is available, or change approvals.onTimeout.',
  },
  TEMPER_APPROVAL_PENDING: {
    meaning: 'The call or the message waits for the decision of a user.',
    fix: 'Decide with the command that the message states, then make the same call again.',
  },
  TEMPER_APPROVAL_USED: {
    meaning:
      'The approved call had started when its process ended, so its effect is unknown. An approval permits one call.',
    fix: 'Check whether the call had its effect; if not, make the call again, which needs another approval.',
  },
  TEMPER_QUOTA_EXCEEDED: {
    meaning: 'A quota of the agent or of its policy is used up.',
    fix: 'Wait for the window the message names, or raise the quota.',
  },
  TEMPER_QUOTA_NEARLY_USED: {
    meaning: 'At least 80 % of a quota of tokens or money are used in the current window, in a run of temper run.',
    fix: 'Raise the quota before it is used up, or wait for the window that the message names.',
  },
  TEMPER_LEDGER_UNAVAILABLE: {
    meaning:
      'The usage counters cannot be reached, or were lost and are not restored yet. No model call is made without them.',
    fix: 'Wait; the call is retried. If the error persists, check why the gateway is not connected to NATS.',
  },
  TEMPER_PATTERN_INVALID: {
    meaning: 'A pattern is malformed.',
    fix: 'Correct the character that the message names; see the pattern reference.',
  },

  TEMPER_TOOL_NOT_FOUND: {
    meaning: 'No tool of that name is visible to the agent.',
    fix: 'Use a listed tool, or forge one.',
  },
  TEMPER_TOOL_NOT_DROPPABLE: {
    meaning: 'An agent can drop only tools that it forged in this session; this one was imported or promoted.',
    fix: 'Ask a user to demote it with `temper demote`.',
  },
  TEMPER_TOOL_AUDIT_IN_PROGRESS: {
    meaning: 'Fresh agents of this agent already work on an audit of the tool.',
    fix: 'Wait for its end; `kubectl temper describe tool NAME` shows it.',
  },
  TEMPER_TOOL_INPUT_INVALID: {
    meaning: 'The arguments break the input schema of the tool.',
    fix: 'Correct the member the message names.',
  },
  TEMPER_TOOL_OUTPUT_INVALID: {
    meaning: 'The output of the tool does not match its output schema. The call failed and counts against the tool.',
    fix: 'Forge a corrected tool.',
  },
  TEMPER_TOOL_FAILED: { meaning: 'The tool ran and failed.', fix: 'The message states the cause.' },
  TEMPER_TOOL_TIMEOUT: {
    meaning: 'The tool did not return in time and was stopped.',
    fix: 'Give the tool less work in one call.',
  },
  TEMPER_TOOL_RECURSION: {
    meaning: 'Tools called each other deeper than allowed, or in a circle.',
    fix: 'Flatten the chain of calls.',
  },
  TEMPER_LOOP_DETECTED: {
    meaning: 'The same call was repeated without progress.',
    fix: 'Change the arguments or the approach.',
  },

  TEMPER_TOOL_OUTCOME_UNKNOWN: {
    meaning:
      'A process ended, or a connection broke, during a call that may have had its effect. Temper does not make the call again.',
    fix: 'Check whether the effect is there before you call the tool again.',
  },
  TEMPER_CODE_DIVERGED: {
    meaning: 'Code was interrupted or waited for an approval, and made other calls when it was repeated.',
    fix: 'Keep only JSON in `memory`, and read what the first calls did before you go on.',
  },

  TEMPER_SANDBOX_UNAVAILABLE: {
    meaning: 'The sandbox cannot start, or its engine is older than the safe version. Temper runs no tool without it.',
    fix: 'Run `make setup`; see the security page for the required engine.',
  },
  TEMPER_PROGRAM_UNAVAILABLE: {
    meaning: 'Nothing can confine a program here, so none runs. Temper runs no program without its launcher.',
    fix: 'The message states what is missing; see the built-in tools for the requirements.',
  },
  TEMPER_PROGRAM_NOT_FOUND: {
    meaning: 'The program is not in the sandbox. The standard sandbox image has no programs.',
    fix: 'Name another program, or give the agent a sandbox class with an image that has it.',
  },
  TEMPER_SANDBOX_SYNTAX: {
    meaning: 'The source of a tool does not compile.',
    fix: 'Correct the line the message names.',
  },
  TEMPER_SANDBOX_NO_ENTRY: {
    meaning: 'The source defines neither `execute` nor `run`.',
    fix: 'Define `function execute(input)`.',
  },
  TEMPER_SANDBOX_EXCEPTION: {
    meaning: 'The tool threw an exception.',
    fix: 'Correct the tool; the message is the exception text, truncated and with control characters escaped.',
  },
  TEMPER_SANDBOX_TIMEOUT: {
    meaning: 'The tool exceeded its time limit, or awaited a promise that can never settle, and was stopped.',
    fix: 'Make it faster, or ask for a longer limit within the policy.',
  },
  TEMPER_SANDBOX_MEMORY: {
    meaning: 'The tool exceeded its memory limit and was stopped.',
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
    meaning: 'The process that ran the tool crashed.',
    fix: 'The tool crashed the JavaScript engine; write it differently.',
  },

  TEMPER_HOST_CALL_DENIED: {
    meaning: 'The tool made a host call that it did not declare or that the policy does not allow.',
    fix: 'Declare the host call, within the policy.',
  },
  TEMPER_FETCH_DENIED: {
    meaning: 'The tool may not reach this address.',
    fix: 'Use an allowed public host over https.',
  },
  TEMPER_FETCH_FAILED: {
    meaning: 'The request failed, or its response exceeded a limit.',
    fix: 'The message states the cause.',
  },
  TEMPER_CONNECTION_DENIED: {
    meaning: 'No connection permits this to the namespace or the agent.',
    fix: 'Ask the platform team; with temper run, see connections.yaml.',
  },
  TEMPER_CONNECTION_UNAUTHORIZED: { meaning: 'The server refuses the credential.', fix: 'Correct or rotate it.' },
  TEMPER_CONNECTION_FAILED: { meaning: 'The request to the server failed.', fix: 'The message states the cause.' },
  TEMPER_FILE_DENIED: { meaning: 'The path lies outside the allowed roots.', fix: 'Use a path below the workspace.' },
  TEMPER_FILE_FAILED: {
    meaning: 'The file cannot be read or written, or is too large.',
    fix: 'The message states the cause.',
  },

  TEMPER_FORGE_DISABLED: {
    meaning: 'The agent, its level or its policy does not allow forging.',
    fix: 'Set spec.forge.enabled, and a TrustPolicy that permits it.',
  },
  TEMPER_FORGE_NO_SESSION: {
    meaning: 'Forging needs a session, and the message has none.',
    fix: 'Send the message in a session.',
  },
  TEMPER_FORGE_SHAPE: {
    meaning: 'The forge request lacks a member, or a member has the wrong type.',
    fix: 'Correct the members that the message lists.',
  },
  TEMPER_FORGE_EXTRA_FIELD: { meaning: 'A schema or request has an unknown member.', fix: 'Remove it.' },
  TEMPER_FORGE_SYNTAX: { meaning: 'The source does not parse.', fix: 'The message has the line and a hint.' },
  TEMPER_FORGE_STATIC: {
    meaning: 'The source uses a language feature or global that a tool may not use.',
    fix: 'Remove it; the message lists every location.',
  },
  TEMPER_FORGE_SCHEMA: {
    meaning: 'A schema is too large, too deep, refers outside itself or cannot be compiled safely.',
    fix: 'The message names the location and the limit.',
  },
  TEMPER_FORGE_COMPOSE: {
    meaning: 'A step of a composed tool is unknown, not permitted, recursive or malformed.',
    fix: 'The message names the step.',
  },
  TEMPER_FORGE_TEST_FAILED: {
    meaning: 'A test case returned an unexpected output, threw an exception, or exceeded a limit.',
    fix: 'The message has the test case, the expected output and the actual output.',
  },
  TEMPER_FORGE_NONDETERMINISTIC: {
    meaning: 'The same test case returned two different outputs.',
    fix: 'Make the tool deterministic, or declare that it is not.',
  },
  TEMPER_FORGE_OUTPUT_SCHEMA: {
    meaning: 'An output does not match the declared output schema.',
    fix: 'The message has the test case and the member.',
  },
  TEMPER_FORGE_LIMITS: {
    meaning: 'A test case used more time or memory than the policy allows.',
    fix: 'The message has the measured values and the limits.',
  },
  TEMPER_FORGE_LIMIT_EXCEEDED: {
    meaning: 'The tool requests more than the policy allows for any tool.',
    fix: 'Request less; the message names the limit.',
  },
  TEMPER_FORGE_NAME_TAKEN: { meaning: 'Another tool visible to the agent has this name.', fix: 'Choose another name.' },
  TEMPER_FORGE_LIMIT_REACHED: {
    meaning: 'The session or the agent has as many forged tools as allowed.',
    fix: 'Use the existing tools, or raise forge.limits.',
  },
  TEMPER_JUDGE_UNAVAILABLE: {
    meaning: 'No judge is configured, or its response is unusable. Without a judge no tool is accepted.',
    fix: 'Name a judge in TrustPolicy spec.models.judge.',
  },
  TEMPER_JUDGE_SUSPENDED: {
    meaning: 'The judge approved a known-bad tool, so its verdicts count for nothing.',
    fix: 'Name another judge in TrustPolicy spec.models, or lift the suspension that the message names.',
  },
  TEMPER_JUDGE_REFUSED: {
    meaning: 'The judge rejected the tool.',
    fix: 'Correct the tool; the message has the reasons of the judge.',
  },

  TEMPER_TOOL_DEMOTED: {
    meaning:
      'This version of the tool was demoted, by a user or because of its failure record, or deactivated because of the tasks that called it.',
    fix: 'Forge a corrected tool; the same source stays demoted. A user can reactivate a deactivated one.',
  },
  TEMPER_PROMOTION_NOT_READY: {
    meaning: 'The evidence for the tool does not meet the rule for the next tier.',
    fix: 'The message lists what is missing.',
  },
  TEMPER_REPLAY_MISMATCH: {
    meaning: 'The re-run of a recorded use made other calls than the use, or gave another output.',
    fix: 'Make the tool depend on its input, its declared functions and its steps alone; the message names the difference.',
  },
  TEMPER_ATTESTATION_INVALID: {
    meaning: 'The attestation of a package is not signed by the trusted key, is damaged, or is about another tool.',
    fix: 'Obtain the package and its attestation again, and compare the key with its owner.',
  },
  TEMPER_PACKAGE_INVALID: {
    meaning: 'The package is malformed, redacted, or its digest does not match its content.',
    fix: 'Export it again with its source.',
  },
  TEMPER_AUDIT_CHAIN_INVALID: {
    meaning: 'The audit chain has a gap, a modified record or a fork.',
    fix: 'Do not trust tools activated after the named record; restore the file from a backup.',
  },

  TEMPER_REPLAY_NO_MATCH: {
    meaning: 'No entry of the replay script matches this conversation.',
    fix: 'Add an entry; the error shows the last message of the conversation.',
  },
  TEMPER_REPLAY_SCRIPT_INVALID: {
    meaning: 'The replay script is invalid.',
    fix: 'Correct the line the message names.',
  },

  TEMPER_NATS_DATA_LOST: {
    meaning: 'NATS lost its data, including queued messages and messages in flight.',
    fix: 'Send the message again; find out why the volume of NATS was lost.',
  },
  TEMPER_STORAGE_LIMIT_EXCEEDED: {
    meaning: 'The data of a session, of an agent or of a namespace in NATS would exceed its limit in bytes.',
    fix: 'Close the session or sessions that are not needed, or raise the limit that the message names.',
  },

  TEMPER_SESSION_CLOSED: {
    meaning: 'A user closed the session. It takes no more messages.',
    fix: 'Send the message in a new session.',
  },
  TEMPER_SESSION_BUSY: {
    meaning: 'The session has messages that have not ended, so it was not closed.',
    fix: 'Wait until they end, or repeat the command with --end-work, which ends them without an answer.',
  },
  TEMPER_SESSION_INVALID: {
    meaning: 'A message names no session, or one whose id is malformed.',
    fix: 'Send the message in a session; the error describes the format of an id.',
  },
  TEMPER_GATEWAY_UNAVAILABLE: {
    meaning: 'The gateway cannot be reached, or cannot serve the request now.',
    fix: 'Wait: the call is retried automatically. If the error persists, check the pods of the gateway and the NetworkPolicies.',
  },
  TEMPER_GATEWAY_UNTRUSTED: {
    meaning:
      'The server at the address of the gateway has no certificate of this installation. The pod sent it no token.',
    fix: 'Find out which server responds at this address; the files in /etc/temper/endpoints contain the expected address and CA.',
  },
  TEMPER_GATEWAY_FORBIDDEN: {
    meaning: 'The gateway rejected the request: this pod is not bound to the agent, or may not make this call.',
    fix: 'A replaced pod exits by itself; otherwise compare the label temper.dev/agent-uid of the pod with the UID of the Agent, and status.pod with the pod.',
  },
  TEMPER_GATEWAY_BAD_RESPONSE: {
    meaning: 'A response of the gateway is malformed or larger than allowed.',
    fix: 'Run the same version of Temper in the pod and the gateway.',
  },
  TEMPER_EGRESS_UNAVAILABLE: {
    meaning: 'The tool needs network access, and the installation has no egress proxy, or the proxy does not answer.',
    fix: 'Ask the platform team for egress.enabled and for the state of the Deployment temper-egress, or forge a tool that needs no network.',
  },
  TEMPER_POD_INVALID: {
    meaning: 'The pod lacks what its containers need: a folder, a file or its owner is wrong.',
    fix: 'Correct the path that the message names; see the reference page of the pod.',
  },

  TEMPER_KUBE_CONFIG: {
    meaning: 'No cluster can be read from the kubeconfig or the ServiceAccount of the pod.',
    fix: 'Set KUBECONFIG or name the file and context; the message states what is missing.',
  },
  TEMPER_KUBE_UNREACHABLE: {
    meaning: 'The API server did not respond, or its response cannot be parsed.',
    fix: 'Check the address, the network and the certificate authority the message names.',
  },
  TEMPER_KUBE_RESPONSE_TOO_LARGE: {
    meaning:
      'One response of the API server is larger than the client reads. Lists are requested again in smaller pages.',
    fix: 'Select fewer objects, by namespace or label, or delete the large ones.',
  },
  TEMPER_CLUSTER_FORBIDDEN: {
    meaning: 'The cluster does not allow this: RBAC or an admission policy denies it.',
    fix: 'The message names the missing permission or the rule; ask the administrator of the namespace.',
  },
  TEMPER_CLUSTER_REFUSED: {
    meaning: 'The API server rejected the request.',
    fix: 'Correct the request; the message is the text of the API server.',
  },
  TEMPER_GATEWAY_UNREACHABLE: {
    meaning: 'The gateway does not respond through the API server.',
    fix: 'Check the gateway with `temper check`; the message states the cause.',
  },
  TEMPER_NOT_LEADER: {
    meaning: 'A process that is not the leader tried to write. Nothing was written.',
    fix: 'Nothing; the leader does the work.',
  },
  TEMPER_LEADERSHIP_LOST: {
    meaning: 'The leader could not renew its Lease in time; another process may lead now.',
    fix: 'Nothing: the process exits and is restarted. If this happens often, check the load of the API server and the CPU limit.',
  },
  TEMPER_TOKEN_INVALID: {
    meaning: 'The token was rejected: not signed by this cluster, expired, or issued for the wrong ServiceAccount.',
    fix: 'A pod reads its token again from the mounted file; the CLI requests a new token for every command.',
  },
  TEMPER_TOKEN_AUDIENCE: {
    meaning: 'The token was issued for another audience.',
    fix: 'Request a token whose only audience is this gateway.',
  },
  TEMPER_ORIGIN_DENIED: {
    meaning: 'The request to the MCP endpoint of the gateway has the header `Origin` of a page of another machine.',
    fix: 'Call the endpoint from a program, which sends no `Origin`, or from a page of this machine.',
  },
  TEMPER_POD_UNKNOWN: {
    meaning: 'The API server has no agent pod with this name and UID.',
    fix: 'Nothing: the pod was deleted, and its token is no longer valid.',
  },
  TEMPER_POD_STARTING: {
    meaning: 'The API server does not have the address of the pod yet.',
    fix: 'Retry after the time that the response states.',
  },
  TEMPER_POD_ADDRESS_MISMATCH: {
    meaning: 'The request does not come from the address of the pod whose token it carries.',
    fix: 'Remove any address translation (NAT) between the pod and the gateway; use a token only in its own pod.',
  },
  TEMPER_POD_NOT_BOUND: {
    meaning: 'No agent is bound to the pod: it is still warm, or was replaced.',
    fix: 'Nothing: a warm pod requests its assignment, and a replaced pod exits.',
  },
  TEMPER_POD_BINDING_CONFLICT: {
    meaning:
      'More than one Agent names this pod, or the Agent has several living pods, so the gateway serves none of them.',
    fix: 'Nothing: the operator deletes the pods that are too many. If the error persists, compare status.pod of the agents that the log names with the label temper.dev/agent-uid of their pods; only the operator may write them.',
  },
  TEMPER_AGENT_SUSPENDED: {
    meaning: 'The agent is suspended, by its own spec or by its policy.',
    fix: 'Wait; messages are stored. `kubectl temper resume` resumes the agent.',
  },
  TEMPER_REQUEST_INVALID: {
    meaning: 'The request does not match the schema of its route.',
    fix: 'Correct the field the message names; see `/v1/openapi.json`.',
  },
  TEMPER_REQUEST_TOO_LARGE: {
    meaning: 'The body of the request is larger than its route allows.',
    fix: 'Send less in one call.',
  },
  TEMPER_RATE_LIMITED: {
    meaning: 'The caller exceeded its rate limit at the gateway.',
    fix: 'Retry after the time that the response states.',
  },
  TEMPER_OVERLOADED: {
    meaning: 'The gateway is overloaded or shutting down.',
    fix: 'Retry after the time that the response states; another replica may respond.',
  },
  TEMPER_CONFIGURATION_INVALID: {
    meaning: 'The configuration file of a role is invalid.',
    fix: 'Correct the field the message names.',
  },

  ...MODEL_ERROR_CODES,
  ...MESSAGE_ERROR_CODES,
  ...STATE_ERROR_CODES,
  ...OCI_ERROR_CODES,
  ...WEB_ERROR_CODES,
  ...SOURCE_ERROR_CODES,
  ...LOOP_ERROR_CODES,
} as const satisfies Record<string, ErrorCodeEntry>;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);
}
