import { Type, type Static } from 'typebox';
import { parseQuantityBytes } from '../../api/quantities.ts';

const closed = { additionalProperties: false } as const;
const Size = Type.String({ pattern: '^[0-9]{1,12}(k|Ki|M|Mi|G|Gi|T|Ti)?$' });
/** Not those that Temper sets, nor those that choose what Node loads. */
const VARIABLE = '^(?!(?:HOME|TMPDIR|NODE_OPTIONS|NODE_PATH)$)[A-Za-z_][A-Za-z0-9_]{0,127}$';

/** A program for `spec.model.agent`, in an image that is built from the sandbox image. */
export const AgentProgramConfig = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 }),
    /** By digest: a tag that moves would change what an agent runs. */
    image: Type.String({ maxLength: 512, pattern: '^[A-Za-z0-9][A-Za-z0-9._/:-]*@sha256:[0-9a-f]{64}$' }),
    /** The folder in the image that the program may read. */
    folder: Type.String({
      maxLength: 256,
      pattern: '^/opt/[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$',
    }),
    /** A JavaScript file in the folder. */
    program: Type.String({
      maxLength: 512,
      pattern: '^[A-Za-z0-9@_-][A-Za-z0-9@._-]*(/[A-Za-z0-9@_-][A-Za-z0-9@._-]*)*$',
    }),
    arguments: Type.Optional(Type.Array(Type.String({ maxLength: 1_024 }), { maxItems: 50 })),
    environment: Type.Optional(
      Type.Record(Type.String({ pattern: VARIABLE }), Type.String({ maxLength: 4_096 }), {
        ...closed,
        maxProperties: 50,
      }),
    ),
    /** Memory that the sandbox container has for its processes and their homes, besides that of its class. Defaults to 2Gi. */
    memory: Type.Optional(Size),
    /** Of the memory, the part for the homes of all processes. Defaults to 256Mi. */
    homes: Type.Optional(Size),
  },
  closed,
);
export type AgentProgramConfig = Static<typeof AgentProgramConfig>;

const DEFAULT_MEMORY = '2Gi';
const DEFAULT_HOMES = '256Mi';
const MEBIBYTE = 1_024 * 1_024;
/** A Node program does not start with less. */
const MIN_HEAP_MEBIBYTES = 64;

export interface ProgramMemory {
  bytes: number;
  homesBytes: number;
  /** Of each process. */
  heapMebibytes: number;
}

/** The memory of a program for so many processes: a quarter of what the homes leave is for what is not in a heap. */
export function programMemory(
  { memory = DEFAULT_MEMORY, homes = DEFAULT_HOMES }: AgentProgramConfig,
  processes: number,
): ProgramMemory {
  const [bytes, homesBytes] = [parseQuantityBytes(memory), parseQuantityBytes(homes)];
  return { bytes, homesBytes, heapMebibytes: Math.floor((0.75 * (bytes - homesBytes)) / processes / MEBIBYTE) };
}

/** Why the programs cannot be used; undefined when they can. */
export function programsProblem(programs: readonly AgentProgramConfig[], processes: number): string | undefined {
  const names = programs.map(({ name }) => name);
  if (new Set(names).size < names.length) return 'two entries of agentPrograms have the same name; rename one';
  const small = programs.find((program) => programMemory(program, processes).heapMebibytes < MIN_HEAP_MEBIBYTES);
  if (small === undefined) return undefined;
  return `the memory of agent program "${small.name}" leaves less than ${MIN_HEAP_MEBIBYTES} MiB for the heap of each of ${processes} processes; raise memory or lower homes`;
}
