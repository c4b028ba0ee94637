/** Names that the parts of an installation on a cluster agree on: operator, gateway, agent pods, chart and command line. */

export const LABELS = {
  /** On a namespace: agents live here and it is fenced. */
  agents: 'temper.dev/agents',
  /** On every pod of an agent, bound or warm; reserved to the operator. What the deny-all policy selects. */
  agentPod: 'temper.dev/agent-pod',
  /** On a pod: the uid of the agent it was made for. Absent on a warm one. */
  agentUid: 'temper.dev/agent-uid',
  /** On a pod: the sandbox class it was made from. */
  sandboxClass: 'temper.dev/sandbox-class',
} as const;

export const ANNOTATIONS = {
  /** On a pod: digest of the template it was made from. Another one makes a new pod. */
  template: 'temper.dev/template-digest',
  /** On a pod: the agent's name, for people. */
  agent: 'temper.dev/agent',
} as const;

/** Objects of fixed name in every namespace with agents. */
export const NAMESPACE_OBJECTS = {
  /** What agent pods run as. It has no rights. */
  agentServiceAccount: 'temper-agent',
  /** What people act as towards the gateway: who may make a token of it may speak to the agents of the namespace. */
  peopleServiceAccount: 'temper-people',
  /** Addresses of the doors and the authority their certificates are from. */
  doors: 'temper-doors',
  denyAll: 'temper-deny-all',
  allowGateway: 'temper-allow-gateway',
  resourceQuota: 'temper-agents',
} as const;

export const PRIORITY_CLASS = 'temper-agent';

/** Objects of fixed name in the namespace of the release. */
export const RELEASE_OBJECTS = {
  gateway: 'temper-gateway',
  nats: 'temper-nats',
  /** Secrets that the operator keeps: the authority, certificates from it, keys. */
  authority: 'temper-authority',
  gatewayCertificate: 'temper-gateway-tls',
  natsCertificate: 'temper-nats-tls',
  /** Server configuration with the public keys of the users. */
  natsConfiguration: 'temper-nats-config',
  /** One nkey seed for each named user: `operator.nk`, `gateway.nk`. */
  natsUsers: 'temper-nats-users',
  /** `lease.key`: what delivery leases are signed with. */
  gatewayKeys: 'temper-gateway-keys',
  /** ConfigMap: when the store of the bus was made, so that its loss is noticed. */
  busStore: 'temper-bus-store',
} as const;

/** The audience of a token says which door it opens. */
export const AUDIENCES = { gateway: 'temper-gateway', egress: 'temper-egress' } as const;

export const PORTS = {
  /** HTTPS: pods and people. */
  gateway: 8443,
  /** HTTP: `/healthz`, `/readyz`, `/metrics` of every role. */
  health: 9090,
  nats: 4222,
} as const;

/** Where things are mounted in an agent pod. */
export const POD_PATHS = {
  /** Folder with the files `gateway` (`https://address:port`), `gateway-name` (what its certificate must say) and `ca.crt`. */
  doors: '/etc/temper/doors',
  gatewayToken: '/var/run/temper/tokens/gateway',
  /** Volume in memory that both containers mount; the agent makes a folder of its own in it. */
  run: '/run/temper',
  workspace: '/workspace',
} as const;

/** Both containers share the group, so that the sandbox may reach the socket. */
export const POD_USERS = { agent: 10_001, sandbox: 10_002, group: 10_000 } as const;
