import { readFile } from 'node:fs/promises';
import { Type, type Static } from 'typebox';
import { Check, Errors } from 'typebox/value';
import { parse } from 'yaml';
import { parseMillicores, parseQuantityBytes } from '../api/quantities.ts';
import { TemperError, messageOf } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';

const closed = { additionalProperties: false } as const;
const Name = Type.String({ pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 });
const Image = Type.String({ minLength: 1, maxLength: 512, pattern: '^[A-Za-z0-9][A-Za-z0-9._/:@-]*$' });
const Labels = Type.Record(Type.String(), Type.String({ maxLength: 63 }));

const Cpu = Type.String({ pattern: '^[0-9]{1,6}(m|\\.[0-9]{1,3})?$' });

const Resources = Type.Object(
  {
    cpu: Cpu,
    /** What may be used while nobody else wants it; `cpu` when absent. */
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
    /** Of the sandbox container; an agent may ask for others. */
    resources: Resources,
    workspace: Type.String({ pattern: '^[0-9]{1,12}(k|Ki|M|Mi|G|Gi|T|Ti)?$' }),
    /** Warm pods to keep, by namespace. */
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
    /** Namespace of the release. */
    namespace: Name,
    /** The namespaces to look after; absent: all. */
    namespaces: Type.Optional(Type.Array(Name, { minItems: 1, maxItems: 200, uniqueItems: true })),
    agent: Type.Object({ image: Image, resources: Resources }, closed),
    imagePullPolicy: Type.Optional(Type.Enum(['Always', 'IfNotPresent', 'Never'])),
    imagePullSecrets: Type.Optional(Type.Array(Name, { maxItems: 10 })),
    /** The first one is for agents that name none. */
    sandboxClasses: Type.Array(SandboxClass, { minItems: 1, maxItems: 20 }),
    gateway: Type.Object(
      {
        service: Name,
        /** Labels of the gateway's pods, for the NetworkPolicy. */
        podLabels: Labels,
        /** Names its certificate shall hold beside those of its Service. */
        extraNames: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 20 })),
      },
      closed,
    ),
    nats: Type.Optional(
      Type.Object(
        {
          url: Type.String({ pattern: '^(tls|nats)://', maxLength: 512 }),
          /** Service of the server this release runs; absent when it is somebody else's, which needs no certificate of ours. */
          service: Type.Optional(Name),
          server: Type.Optional(
            Type.Object(
              {
                /** Bytes all streams may take together; 6 GiB when absent. */
                storeBytes: Type.Optional(Type.Integer({ minimum: 1 })),
                extraNames: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 20 })),
              },
              closed,
            ),
          ),
          /** File with the seed of the user `operator`, and one with the authority to trust. */
          seedFile: Type.String({ maxLength: 512 }),
          caFile: Type.Optional(Type.String({ maxLength: 512 })),
          replicas: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
        },
        closed,
      ),
    ),
    /** The guard policies that must be in force. Absent: they are not part of this installation, and no namespace counts as fenced. */
    guard: Type.Optional(
      Type.Object(
        {
          /** By name, the digest of the spec each must have; `installed` for what another release installs: whatever that one made of it. */
          policies: Type.Record(Type.String(), Type.String({ pattern: '^(sha256:[0-9a-f]{64}|installed)$' })),
        },
        closed,
      ),
    ),
    health: Type.Optional(
      Type.Object({ host: Type.Optional(Type.String()), port: Type.Integer({ minimum: 0, maximum: 65_535 }) }, closed),
    ),
    logLevel: Type.Optional(Type.Enum(['debug', 'info', 'warn', 'error'])),
    /** Reconciles of agents at once. */
    concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 64 })),
    leaderElection: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type OperatorConfig = Static<typeof Config>;

/** `parseOperatorConfig` of a file. */
export async function readOperatorConfig(file: string): Promise<OperatorConfig> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw invalid(`${printable(file, 300)} cannot be read: ${printable(messageOf(error, 200))}`);
  }
  return parseOperatorConfig(text);
}

/** Reads and checks the configuration. Throws TEMPER_CONFIGURATION_INVALID that names the field, the rule and the value's place. */
export function parseOperatorConfig(text: string): OperatorConfig {
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    throw invalid(`it is not YAML: ${printable(messageOf(error), 300)}`);
  }
  if (!Check(Config, value)) {
    const [first] = Errors(Config, value);
    const field =
      first === undefined || first.instancePath === ''
        ? 'the document'
        : first.instancePath.slice(1).replaceAll('/', '.');
    throw invalid(`${printable(field, 200)} ${first?.message ?? 'has another form'}`);
  }
  checkQuantities(value);
  const names = value.sandboxClasses.map(({ name }) => name);
  if (new Set(names).size < names.length) throw invalid('two entries of sandboxClasses have one name; rename one');
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
