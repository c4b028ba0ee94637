import { parseMillicores, parseQuantityBytes } from '../../api/quantities.ts';
import { AUDIENCES, LABELS, NAMESPACE_OBJECTS, POD_PATHS, POD_USERS, PRIORITY_CLASS } from '../../api/cluster.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { OperatorConfig, Resources, SandboxClass } from '../config.ts';
import { bytesQuantity, cpuQuantity } from '../kube/quantities.ts';
import type { AgentProgramConfig } from '../programs/agent-program.ts';
import { type ProgramParts, programParts } from '../programs/program-parts.ts';

/** A pod template. It contains nothing specific to an agent, so that any agent can claim a warm pod. */
export interface PodTemplate {
  readonly className: string;
  /** The operator replaces pods with a different digest. */
  readonly digest: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

type TemplateConfig = Pick<OperatorConfig, 'agent' | 'egress' | 'imagePullPolicy' | 'imagePullSecrets'>;

/** An address reserved for documentation, where no server responds. `dnsPolicy: None` requires at least one nameserver. */
const NO_NAMESERVER = '192.0.2.1';
const TOKEN_SECONDS = 3_600;
type WorkspaceFiles = NonNullable<NonNullable<NonNullable<AgentSpec['sandbox']>['workspace']>['files']>;
const TEMP_VOLUME_SIZE = '64Mi';
const GRACE_SECONDS = 30;
/** Toleration for an unreachable node. Shorter than the default of five minutes: a pod has no persistent state, and only one pod is bound. */
const UNREACHABLE_TOLERATION_SECONDS = 30;
/** The startup probe must not restart the agent while the gateway is unavailable. */
const NO_FAILURE_THRESHOLD = 1_000_000;
/** A failed startup probe is an Event, so a pod that starts slowly has one Event per half minute. */
const STARTUP_WAIT_SECONDS = 30;
const READY_FILE = `${POD_PATHS.run}/agent/ready`;

/**
 * The template of a sandbox class; the sandbox fields of the agent override those of the class. With an agent program the sandbox container has
 * its image.
 */
export function podTemplate(
  config: TemplateConfig,
  sandboxClass: SandboxClass,
  sandbox: AgentSpec['sandbox'] = {},
  program?: AgentProgramConfig,
): PodTemplate {
  const parts = program === undefined ? undefined : programParts(program);
  const spec = podSpec(config, sandboxClass, sandbox, parts);
  return { className: sandboxClass.name, digest: digestOf(spec as Json), spec };
}

/** The templates of one configuration. Templates without overrides are cached, because every reconcile needs one. */
export class PodTemplates {
  readonly #config: TemplateConfig;
  readonly #plain = new Map<SandboxClass, PodTemplate>();

  constructor(config: TemplateConfig) {
    this.#config = config;
  }

  get(sandboxClass: SandboxClass, sandbox: AgentSpec['sandbox'] = {}, program?: AgentProgramConfig): PodTemplate {
    if (sandbox.resources !== undefined || sandbox.workspace !== undefined || program !== undefined) {
      return podTemplate(this.#config, sandboxClass, sandbox, program);
    }
    const known = this.#plain.get(sandboxClass) ?? podTemplate(this.#config, sandboxClass);
    this.#plain.set(sandboxClass, known);
    return known;
  }
}

function podSpec(
  config: TemplateConfig,
  sandboxClass: SandboxClass,
  sandbox: NonNullable<AgentSpec['sandbox']>,
  program: ProgramParts | undefined,
) {
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
      tolerationSeconds: UNREACHABLE_TOLERATION_SECONDS,
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
    containers: [
      agentContainer(config, program),
      sandboxContainer(config, sandboxClass, sandbox, { workspace, program }),
    ],
    volumes: [...volumes(config, workspace, sandbox.workspace?.files ?? []), ...(program?.volumes ?? [])],
  };
}

function agentContainer({ agent, imagePullPolicy }: TemplateConfig, program: ProgramParts | undefined) {
  const { memory } = agent.resources;
  return {
    name: 'agent',
    image: agent.image,
    ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
    args: ['serve', 'agent'],
    // Each exec probe starts a process (about 40 ms of CPU time). The startup probe waits for the pod instead of being repeated.
    startupProbe: { ...readyProbe(STARTUP_WAIT_SECONDS), periodSeconds: 1, failureThreshold: NO_FAILURE_THRESHOLD },
    readinessProbe: { ...readyProbe(), periodSeconds: 10, failureThreshold: 3 },
    resources: resources({ ...agent.resources, memory: plus(memory, program?.agentMemoryBytes) }),
    securityContext: securityContext(POD_USERS.agent),
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'endpoints', mountPath: POD_PATHS.endpoints, readOnly: true },
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

/** An exec probe with a program of the image, because the NetworkPolicy allows no connection to the pod. */
function readyProbe(waitSeconds = 0) {
  return {
    exec: { command: ['/usr/local/bin/launcher', 'ready', READY_FILE, String(POD_USERS.agent), String(waitSeconds)] },
    timeoutSeconds: waitSeconds + 2,
  };
}

function sandboxContainer(
  { imagePullPolicy }: TemplateConfig,
  { image, resources: standard }: SandboxClass,
  sandbox: NonNullable<AgentSpec['sandbox']>,
  { workspace, program }: { workspace: string; program: ProgramParts | undefined },
) {
  const { cpu = standard.cpu, memory = standard.memory } = sandbox.resources ?? {};
  const files = sandbox.workspace?.files ?? [];
  return {
    name: 'sandbox',
    image: program?.image ?? image,
    ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
    args: ['serve', 'sandbox', ...(program?.args ?? [])],
    resources: resources({
      ...standard,
      cpu,
      memory: plus(memory, program?.memoryBytes),
      ephemeralStorage: sum(standard.ephemeralStorage, workspace),
    }),
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
      ...(program?.volumeMounts ?? []),
    ],
  };
}

/** A quantity with further bytes; as it is written without any. */
function plus(quantity: string, bytes = 0): string {
  return bytes === 0 ? quantity : bytesQuantity(parseQuantityBytes(quantity) + bytes);
}

function sum(one: string, other: string): string {
  return bytesQuantity(parseQuantityBytes(one) + parseQuantityBytes(other));
}

/** Requests equal limits for memory and storage. The CPU limit may exceed the request, because starting needs a burst of CPU. */
function resources(desired: Resources) {
  const request = parseMillicores(desired.cpu);
  const limit = Math.max(request, parseMillicores(desired.cpuLimit ?? desired.cpu));
  const guaranteed = {
    memory: bytesQuantity(parseQuantityBytes(desired.memory)),
    'ephemeral-storage': bytesQuantity(parseQuantityBytes(desired.ephemeralStorage)),
  };
  return { requests: { cpu: cpuQuantity(request), ...guaranteed }, limits: { cpu: cpuQuantity(limit), ...guaranteed } };
}

function securityContext(runAsUser: number) {
  return {
    runAsUser,
    // Set per container: in the pod security context, a runtime rejects a group without a user.
    runAsGroup: POD_USERS.group,
    runAsNonRoot: true,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
  };
}

/** One token for each server of the installation that the pod may reach: none is valid at another one. */
function tokens({ egress }: TemplateConfig) {
  const paths: ('gateway' | 'egress')[] = egress === undefined ? ['gateway'] : ['gateway', 'egress'];
  return paths.map((path) => ({
    serviceAccountToken: { audience: AUDIENCES[path], expirationSeconds: TOKEN_SECONDS, path },
  }));
}

function volumes(config: TemplateConfig, workspace: string, files: WorkspaceFiles) {
  return [
    { name: 'endpoints', configMap: { name: NAMESPACE_OBJECTS.endpoints } },
    { name: 'tokens', projected: { sources: tokens(config) } },
    { name: 'run', emptyDir: { medium: 'Memory', sizeLimit: TEMP_VOLUME_SIZE } },
    { name: 'workspace', emptyDir: { sizeLimit: workspace } },
    ...files.map(({ configMap }, index) => ({ name: `files-${index}`, configMap: { name: configMap.name } })),
    { name: 'tmp-agent', emptyDir: { sizeLimit: TEMP_VOLUME_SIZE } },
    { name: 'tmp-sandbox', emptyDir: { sizeLimit: TEMP_VOLUME_SIZE } },
  ];
}

/** Labels of a warm pod of the template. */
export function podLabels(template: PodTemplate): Record<string, string> {
  return { [LABELS.agentPod]: 'true', [LABELS.sandboxClass]: template.className };
}
