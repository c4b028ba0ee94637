/** Names shared by the components of an installation: operator, gateway, agent pods, chart and CLI. */

export const LABELS = {
  /** On a namespace: agents run here, and the admission policies protect the namespace. */
  agents: 'temper.dev/agents',
  /** On every agent pod, bound or warm. Only the operator may set it. The deny-all NetworkPolicy selects it. */
  agentPod: 'temper.dev/agent-pod',
  /** On a pod: the UID of its agent. Absent on a warm pod. */
  agentUid: 'temper.dev/agent-uid',
  /** On the pod of an agent with grants for hosts: it may reach the egress proxy. Only the operator may set it. */
  egress: 'temper.dev/egress',
  /** On every verifier pod, in the release namespace only. Only the operator may set it. */
  verifierPod: 'temper.dev/verifier-pod',
  /** On a verifier pod: the verification that it was assigned. Absent while it is warm; never changed or removed. */
  verification: 'temper.dev/verification',
  /** On a pod: its sandbox class. */
  sandboxClass: 'temper.dev/sandbox-class',
  /** On an EmergentTool of tier Agent: the name of its agent. */
  agent: 'temper.dev/agent',
  /** On a child agent: the UID of the agent that started it, which also owns it. */
  parentAgent: 'temper.dev/parent-agent-uid',
  /** On a child agent that lives for one task. */
  specialist: 'temper.dev/specialist',
} as const;

export const ANNOTATIONS = {
  /** On a pod: the digest of its pod template. The operator replaces a pod whose digest is out of date. */
  template: 'temper.dev/template-digest',
  /** On a child agent: the request that it was created for. */
  childRequest: 'temper.dev/child-request',
  /** On a specialist: RFC 3339, when it ends at the latest. */
  endsAt: 'temper.dev/ends-at',
  /** On a pod: the name of the agent. Only for human readers. */
  agent: 'temper.dev/agent',
  /** On an EmergentTool: the digest of the tool that leaves for it, and why. Its agent had its maximum of tools. */
  replaces: 'temper.dev/replaces',
} as const;

/** Objects with a fixed name in every namespace with agents. */
export const NAMESPACE_OBJECTS = {
  /** The ServiceAccount of agent pods. It has no permissions. */
  agentServiceAccount: 'temper-agent',
  /** The ServiceAccount for users. A user who may create a token of it may send messages to the agents of the namespace. */
  usersServiceAccount: 'temper-users',
  /** The ConfigMap with the gateway address and the CA bundle. */
  endpoints: 'temper-endpoints',
  denyAll: 'temper-deny-all',
  allowGateway: 'temper-allow-gateway',
  allowEgress: 'temper-allow-egress',
  resourceQuota: 'temper-agents',
} as const;

/** MCP servers that the platform runs. */
export const MCP_BRIDGE = {
  port: 8080,
  path: '/mcp',
  /** A volume in memory for each session, named by its number. */
  homes: '/home/sessions',
  /** The header with the namespace of the agent whose session it is. */
  ownerHeader: 'temper-namespace',
  /** The header with a name of the session of the agent: its MCP sessions at all gateways share a process. */
  sessionHeader: 'temper-session',
} as const;

export const PRIORITY_CLASS = 'temper-agent';

/** Objects with a fixed name in the release namespace. */
export const RELEASE_OBJECTS = {
  gateway: 'temper-gateway',
  /** The ServiceAccount and the Service of the egress proxy. */
  egress: 'temper-egress',
  nats: 'temper-nats',
  /** Headless Service: the DNS names of the single NATS servers of a cluster. */
  natsServers: 'temper-nats-headless',
  /** Secrets that the operator maintains: the CA, the certificates that it issued, and keys. */
  ca: 'temper-ca',
  gatewayCertificate: 'temper-gateway-tls',
  egressCertificate: 'temper-egress-tls',
  natsCertificate: 'temper-nats-tls',
  /** NATS server configuration with the public keys of the NATS users. */
  natsConfiguration: 'temper-nats-config',
  /** One nkey seed per NATS user: `operator.nk`, `gateway.nk`. */
  natsUsers: 'temper-nats-users',
  /** `delivery-token.key` signs delivery tokens; `delivery-token.other.key`, the next or previous key, verifies them as well. */
  gatewaySigningKeys: 'temper-gateway-signing-keys',
  /** The keys of withheld sources, in `keys.json`. The gateways and the operator read it. */
  sourceKeys: 'temper-source-keys',
  /** ConfigMap with the creation time of the NATS store, to detect the loss of the store. */
  natsStore: 'temper-nats-store',
  /** ConfigMap with the tools whose promotion rested on answers that only pods reported. */
  reportedTools: 'temper-reported-tools',
  /** Secret with the keys that sign the heads of the provenance chain, and the ConfigMap with the heads. */
  auditKey: 'temper-audit-key',
  auditHeads: 'temper-audit-heads',
  /** The ServiceAccount of verifier pods. It has no permissions. */
  verifierServiceAccount: 'temper-verifier',
} as const;

/**
 * The ConfigMap with the attestation of a Shared tool, in `attestation.json`. An object that was deleted and created again gets one of its
 * own, because its approval is another one.
 */
export function attestationName({ name, uid }: { readonly name: string; readonly uid: string }): string {
  return `${name}-${uid.slice(0, 8)}-attestation`;
}

/** The audience of a token names the endpoint that accepts it. */
export const AUDIENCES = {
  gateway: 'temper-gateway',
  egress: 'temper-egress',
  /** Tokens of ServiceAccounts that call agents over A2A. */
  a2a: 'temper-a2a',
} as const;

export const PORTS = {
  /** HTTPS, for pods and users. */
  gateway: 8443,
  /** HTTPS, for pods: the proxy for their connections to the internet. */
  egress: 8445,
  /** HTTP, in every role: `/healthz`, `/readyz`, `/metrics`. */
  health: 9090,
  nats: 4222,
  /** TLS with client certificates, between the NATS servers of a cluster. */
  natsRoutes: 6222,
} as const;

/** Mount paths in an agent pod. */
export const POD_PATHS = {
  /**
   * Folder with the files `gateway` (`https://address:port`), `gateway-name` (the expected name in its certificate) and `ca.crt`, and with
   * `egress` and `egress-name` where an egress proxy is installed.
   */
  endpoints: '/etc/temper/endpoints',
  gatewayToken: '/var/run/temper/tokens/gateway',
  egressToken: '/var/run/temper/tokens/egress',
  /** In-memory volume that both containers mount. The agent container creates its own folder in it. */
  run: '/run/temper',
  workspace: '/workspace',
  /** In the sandbox container: a volume in memory for each process of an agent program, named by its number. */
  programHomes: '/home/programs',
} as const;

/** Processes of an agent program in a pod at the same time: each works for one session. */
export const AGENT_PROGRAM_PROCESSES = 4;

/** The numbers of the processes. */
export const AGENT_PROGRAM_NUMBERS: readonly number[] = Array.from({ length: AGENT_PROGRAM_PROCESSES }, (_, at) => at);

/** Both containers share the group, so that the sandbox can connect to the socket. */
export const POD_USERS = { agent: 10_001, sandbox: 10_002, group: 10_000 } as const;
