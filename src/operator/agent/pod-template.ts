import { parseMillicores, parseQuantityBytes } from '../../api/quantities.ts';
import { AUDIENCES, LABELS, NAMESPACE_OBJECTS, POD_PATHS, POD_USERS, PRIORITY_CLASS } from '../../api/cluster.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { OperatorConfig, Resources, SandboxClass } from '../config.ts';
import { bytesQuantity, cpuQuantity } from '../quantities.ts';

/** What pods of one kind are made from. Nothing in it names an agent, so that a warm pod can become any. */
export interface PodTemplate {
  readonly className: string;
  /** Another digest makes a new pod. */
  readonly digest: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

type TemplateConfig = Pick<OperatorConfig, 'agent' | 'imagePullPolicy' | 'imagePullSecrets'>;

/** Nobody answers there: the address is reserved for documentation. Without a nameserver `dnsPolicy: None` is refused. */
const NO_NAMESERVER = '192.0.2.1';
const TOKEN_SECONDS = 3_600;
type WorkspaceFiles = NonNullable<NonNullable<NonNullable<AgentSpec['sandbox']>['workspace']>['files']>;
const RUN_VOLUME = '64Mi';
const GRACE_SECONDS = 30;
/** Nothing is kept in a pod and no two are bound to an agent, so it is not worth the five minutes that are usual. */
const SILENT_NODE_SECONDS = 30;
/** A gateway that is away is no reason to start again. */
const WAITS_FOR_EVER = 1_000_000;
const READY_FILE = `${POD_PATHS.run}/agent/ready`;

/** The template of a class, with what the agent asks of its sandbox in place of what the class gives. */
export function podTemplate(
  config: TemplateConfig,
  sandboxClass: SandboxClass,
  sandbox: AgentSpec['sandbox'] = {},
): PodTemplate {
  const spec = podSpec(config, sandboxClass, sandbox);
  return { className: sandboxClass.name, digest: digestOf(spec as Json), spec };
}

/** Templates of one configuration. Those of plain classes are made once: every reconcile asks for one. */
export class PodTemplates {
  readonly #config: TemplateConfig;
  readonly #plain = new Map<SandboxClass, PodTemplate>();

  constructor(config: TemplateConfig) {
    this.#config = config;
  }

  of(sandboxClass: SandboxClass, sandbox: AgentSpec['sandbox'] = {}): PodTemplate {
    if (sandbox.resources !== undefined || sandbox.workspace !== undefined) {
      return podTemplate(this.#config, sandboxClass, sandbox);
    }
    const known = this.#plain.get(sandboxClass) ?? podTemplate(this.#config, sandboxClass);
    this.#plain.set(sandboxClass, known);
    return known;
  }
}

function podSpec(config: TemplateConfig, sandboxClass: SandboxClass, sandbox: NonNullable<AgentSpec['sandbox']>) {
  const workspace = bytesQuantity(parseQuantityBytes(sandbox.workspace?.size ?? sandboxClass.workspace));
  const { runtimeClassName, nodeSelector } = sandboxClass;
  return {
    serviceAccountName: NAMESPACE_OBJECTS.agentServiceAccount,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    priorityClassName: PRIORITY_CLASS,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    restartPolicy: 'Always',
    tolerations: ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: SILENT_NODE_SECONDS,
    })),
    dnsPolicy: 'None',
    dnsConfig: { nameservers: [NO_NAMESERVER] },
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(config.imagePullSecrets === undefined
      ? {}
      : { imagePullSecrets: config.imagePullSecrets.map((name) => ({ name })) }),
    securityContext: {
      runAsNonRoot: true,
      fsGroup: POD_USERS.group,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [agentContainer(config), sandboxContainer(config, sandboxClass, sandbox, workspace)],
    volumes: volumes(workspace, sandbox.workspace?.files ?? []),
  };
}

function agentContainer({ agent, imagePullPolicy }: TemplateConfig) {
  return {
    name: 'agent',
    image: agent.image,
    ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
    args: ['serve', 'agent'],
    // Every look is a process that the runtime starts, some 40 ms of processor time: often only until it is ready for the first time.
    startupProbe: { ...isReady(), periodSeconds: 1, failureThreshold: WAITS_FOR_EVER },
    readinessProbe: { ...isReady(), periodSeconds: 10, failureThreshold: 3 },
    resources: resources(agent.resources),
    securityContext: securityContext(POD_USERS.agent),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'doors', mountPath: POD_PATHS.doors, readOnly: true },
      {
        name: 'tokens',
        mountPath: POD_PATHS.gatewayToken.slice(0, POD_PATHS.gatewayToken.lastIndexOf('/')),
        readOnly: true,
      },
      { name: 'run', mountPath: POD_PATHS.run },
      { name: 'tmp-agent', mountPath: '/tmp' },
    ],
  };
}

/** A program that the image has. Nobody may connect to the pod, so nothing can be asked of it over the network. */
function isReady() {
  return {
    exec: { command: ['/usr/local/bin/launcher', 'ready', READY_FILE, String(POD_USERS.agent)] },
    timeoutSeconds: 2,
  };
}

function sandboxContainer(
  { imagePullPolicy }: TemplateConfig,
  { image, resources: standard }: SandboxClass,
  sandbox: NonNullable<AgentSpec['sandbox']>,
  workspace: string,
) {
  const { cpu = standard.cpu, memory = standard.memory } = sandbox.resources ?? {};
  const files = sandbox.workspace?.files ?? [];
  return {
    name: 'sandbox',
    image,
    ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
    args: ['serve', 'sandbox'],
    resources: resources({ ...standard, cpu, memory, ephemeralStorage: sum(standard.ephemeralStorage, workspace) }),
    securityContext: securityContext(POD_USERS.sandbox),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'run', mountPath: POD_PATHS.run },
      { name: 'workspace', mountPath: POD_PATHS.workspace },
      ...files.map(({ path }, index) => ({
        name: `files-${index}`,
        mountPath: `${POD_PATHS.workspace}/${path}`,
        readOnly: true,
      })),
      { name: 'tmp-sandbox', mountPath: '/tmp' },
    ],
  };
}

function sum(one: string, other: string): string {
  return bytesQuantity(parseQuantityBytes(one) + parseQuantityBytes(other));
}

/** Memory and storage that are promised are never lent to another. Idle processor time is, up to the limit: starting takes a burst. */
function resources(wanted: Resources) {
  const promised = parseMillicores(wanted.cpu);
  const ceiling = Math.max(promised, parseMillicores(wanted.cpuLimit ?? wanted.cpu));
  const kept = {
    memory: bytesQuantity(parseQuantityBytes(wanted.memory)),
    'ephemeral-storage': bytesQuantity(parseQuantityBytes(wanted.ephemeralStorage)),
  };
  return { requests: { cpu: cpuQuantity(promised), ...kept }, limits: { cpu: cpuQuantity(ceiling), ...kept } };
}

function securityContext(runAsUser: number) {
  return {
    runAsUser,
    // Not of the pod: a runtime refuses a group there without a user.
    runAsGroup: POD_USERS.group,
    runAsNonRoot: true,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
  };
}

function volumes(workspace: string, files: WorkspaceFiles) {
  const serviceAccountToken = { audience: AUDIENCES.gateway, expirationSeconds: TOKEN_SECONDS, path: 'gateway' };
  return [
    { name: 'doors', configMap: { name: NAMESPACE_OBJECTS.doors } },
    { name: 'tokens', projected: { sources: [{ serviceAccountToken }] } },
    { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: RUN_VOLUME } },
    { name: 'workspace', emptyDir: { sizeLimit: workspace } },
    ...files.map(({ configMap }, index) => ({ name: `files-${index}`, configMap: { name: configMap.name } })),
    { name: 'tmp-agent', emptyDir: { sizeLimit: RUN_VOLUME } },
    { name: 'tmp-sandbox', emptyDir: { sizeLimit: RUN_VOLUME } },
  ];
}

/** Labels of a pod of the template; with the uid of its agent when it is made for one. */
export function podLabels(template: PodTemplate, agentUid?: string): Record<string, string> {
  return {
    [LABELS.agentPod]: 'true',
    [LABELS.sandboxClass]: template.className,
    ...(agentUid === undefined ? {} : { [LABELS.agentUid]: agentUid }),
  };
}
