import { readFile } from 'node:fs/promises';
import { Type, type Static } from 'typebox';
import { Check, Errors } from 'typebox/value';
import { parse } from 'yaml';
import { parseMillicores, parseQuantityBytes } from '../api/quantities.ts';
import { AGENT_PROGRAM_PROCESSES } from '../api/cluster.ts';
import { McpServersSection } from '../capabilities/mcp-servers.ts';
import { AgentProgramConfig, programsProblem } from './programs/agent-program.ts';
import { TemperError, messageOf } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';

const closed = { additionalProperties: false } as const;
const Name = Type.String({ pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 });
const Image = Type.String({ minLength: 1, maxLength: 512, pattern: '^[A-Za-z0-9][A-Za-z0-9._/:@-]*$' });
const Labels = Type.Record(Type.String(), Type.String({ maxLength: 63 }));

const Cpu = Type.String({ pattern: '^[0-9]{1,6}(m|\\.[0-9]{1,3})?$' });

const Resources = Type.Object(
  {
    cpu: Cpu,
    /** CPU limit, for bursts above the request `cpu`. Defaults to `cpu`. */
    cpuLimit: Type.Optional(Cpu),
    memory: Type.String({ pattern: '^[0-9]{1,12}(k|Ki|M|Mi|G|Gi|T|Ti)?$' }),
    ephemeralStorage: Type.String({ pattern: '^[0-9]{1,12}(k|Ki|M|Mi|G|Gi|T|Ti)?$' }),
  },
  closed,
);

const SandboxClass = Type.Object(
  {
    name: Name,
    image: Image,
    runtimeClassName: Type.Optional(Name),
    nodeSelector: Type.Optional(Labels),
    /** Resources of the sandbox container. An Agent may override them. */
    resources: Resources,
    workspace: Type.String({ pattern: '^[0-9]{1,12}(k|Ki|M|Mi|G|Gi|T|Ti)?$' }),
    /** Number of warm pods per namespace. */
    pool: Type.Optional(
      Type.Array(Type.Object({ namespace: Name, size: Type.Integer({ minimum: 0, maximum: 1000 }) }, closed), {
        maxItems: 200,
      }),
    ),
  },
  closed,
);
export type SandboxClass = Static<typeof SandboxClass>;
export type Resources = Static<typeof Resources>;

const Config = Type.Object(
  {
    /** Release namespace. */
    namespace: Name,
    /** Namespaces to watch. Absent: all. */
    namespaces: Type.Optional(Type.Array(Name, { minItems: 1, maxItems: 200, uniqueItems: true })),
    agent: Type.Object({ image: Image, resources: Resources }, closed),
    imagePullPolicy: Type.Optional(Type.Enum(['Always', 'IfNotPresent', 'Never'])),
    imagePullSecrets: Type.Optional(Type.Array(Name, { maxItems: 10 })),
    /** The first class is the default. */
    sandboxClasses: Type.Array(SandboxClass, { minItems: 1, maxItems: 20 }),
    /** What `spec.model.agent` may name. */
    agentPrograms: Type.Optional(Type.Array(AgentProgramConfig, { maxItems: 50 })),
    gateway: Type.Object(
      {
        service: Name,
        /** Labels of the gateway's pods, for the NetworkPolicy. */
        podLabels: Labels,
        /** Additional DNS names for its certificate, besides those of its Service. */
        extraNames: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 20 })),
      },
      closed,
    ),
    /** The proxy for connections of agents to the internet. Absent: agents reach the gateway only. */
    egress: Type.Optional(
      Type.Object(
        {
          service: Name,
          /** Labels of the proxy's pods, for the NetworkPolicy. */
          podLabels: Labels,
          /** File with certificate authorities that agents trust for their targets beside the public ones, PEM. */
          caFile: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
        },
        closed,
      ),
    ),
    /** What Capabilities may name: where the connections of the gateways lead, without their credentials. */
    connections: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Name,
            hosts: Type.Array(Type.String({ maxLength: 260 }), { minItems: 1, maxItems: 20 }),
            namespaces: Type.Array(Name, { minItems: 1, maxItems: 1_000 }),
            private: Type.Optional(Type.Boolean()),
          },
          closed,
        ),
        { maxItems: 100 },
      ),
    ),
    /** MCP servers that the platform runs. */
    mcpServers: Type.Optional(McpServersSection),
    /** The tools of services of the platform, and the namespaces that have them. Without namespaces: all. */
    serviceTools: Type.Optional(
      Type.Array(
        Type.Object(
          {
            name: Type.Enum(['web_search', 'sql_query']),
            namespaces: Type.Optional(Type.Array(Name, { minItems: 1 })),
          },
          closed,
        ),
        { maxItems: 2 },
      ),
    ),
    nats: Type.Optional(
      Type.Object(
        {
          url: Type.String({ pattern: '^(tls|nats)://', maxLength: 512 }),
          /** Service of the NATS server of this release. Absent for an external NATS server, which gets no certificate from this operator. */
          service: Type.Optional(Name),
          server: Type.Optional(
            Type.Object(
              {
                /** Maximum bytes of all streams together. Defaults to 6 GiB. */
                storeBytes: Type.Optional(Type.Integer({ minimum: 1 })),
                extraNames: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 20 })),
              },
              closed,
            ),
          ),
          /** Files with the nkey seed of the NATS user `operator`, and with the CA to trust. */
          seedFile: Type.String({ maxLength: 512 }),
          caFile: Type.Optional(Type.String({ maxLength: 512 })),
          replicas: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
          /** The release, which is stored beside the data of its agents. Defaults to `temper`. */
          release: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
          /** The deletion of the data of deleted agents. */
          sweep: Type.Optional(
            Type.Object(
              {
                /** How long the data of a deleted agent is kept. Defaults to 24. */
                afterHours: Type.Optional(Type.Number({ minimum: 0, maximum: 8_760 })),
                /** Only report what would be deleted. */
                dryRun: Type.Optional(Type.Boolean()),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    /** The pods that run tools again before their promotion. Absent: this release promotes no tool. */
    verifier: Type.Optional(
      Type.Object(
        {
          /** Labels of the pods, for the NetworkPolicy of the release. */
          podLabels: Labels,
          /** Pods that are Ready before a verification needs one. Defaults to 1. */
          warm: Type.Optional(Type.Integer({ minimum: 0, maximum: 20 })),
          /** Pods at a time. Defaults to 4. */
          max: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
        },
        closed,
      ),
    ),
    /** The admission policies that must be in force. Absent: they are not part of this installation, and no namespace is protected. */
    admissionPolicies: Type.Optional(
      Type.Object(
        {
          /** By policy name: the required digest of the spec, or `installed` for a policy of another release, whose digest is not known. */
          policies: Type.Record(Type.String(), Type.String({ pattern: '^(sha256:[0-9a-f]{64}|installed)$' })),
        },
        closed,
      ),
    ),
    health: Type.Optional(
      Type.Object({ host: Type.Optional(Type.String()), port: Type.Integer({ minimum: 0, maximum: 65_535 }) }, closed),
    ),
    logLevel: Type.Optional(Type.Enum(['debug', 'info', 'warn', 'error'])),
    /** Number of concurrent Agent reconciles. */
    concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
    leaderElection: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type OperatorConfig = Static<typeof Config>;

/** Reads and parses a configuration file; see `parseOperatorConfig`. */
export async function readOperatorConfig(file: string): Promise<OperatorConfig> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw invalid(`${printable(file, 300)} cannot be read: ${printable(messageOf(error, 200))}`);
  }
  return parseOperatorConfig(text);
}

/** Parses and validates the configuration. Throws TEMPER_CONFIGURATION_INVALID with the field and the rule. */
export function parseOperatorConfig(text: string): OperatorConfig {
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    throw invalid(`not valid YAML: ${printable(messageOf(error), 300)}`);
  }
  if (!Check(Config, value)) {
    const [first] = Errors(Config, value);
    const field =
      first === undefined || first.instancePath === ''
        ? 'the document'
        : first.instancePath.slice(1).replaceAll('/', '.');
    throw invalid(`${printable(field, 200)} ${first?.message ?? 'is invalid'}`);
  }
  checkQuantities(value);
  const names = value.sandboxClasses.map(({ name }) => name);
  if (new Set(names).size < names.length) throw invalid('two entries of sandboxClasses have the same name; rename one');
  const problem = programsProblem(value.agentPrograms ?? [], AGENT_PROGRAM_PROCESSES);
  if (problem !== undefined) throw invalid(problem);
  return value;
}

function checkQuantities({ agent, sandboxClasses }: OperatorConfig): void {
  for (const { cpu, cpuLimit = cpu, memory, ephemeralStorage } of [
    agent.resources,
    ...sandboxClasses.map(({ resources }) => resources),
  ]) {
    if (parseMillicores(cpuLimit) < parseMillicores(cpu)) throw invalid(`cpuLimit ${cpuLimit} is below cpu ${cpu}`);
    parseQuantityBytes(memory);
    parseQuantityBytes(ephemeralStorage);
  }
}

function invalid(what: string): TemperError {
  return new TemperError(
    'TEMPER_CONFIGURATION_INVALID',
    `the operator's configuration: ${what}; see docs/reference/operator.md`,
  );
}
