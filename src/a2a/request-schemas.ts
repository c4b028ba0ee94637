import { type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { firstViolation } from '../gateway-api/validation/first-violation.ts';

/**
 * The forms of requests, of versions 1.0 and 0.3 together. The SDK converts what it gets to the types that it expects, so that an object
 * would become the text "[object Object]"; a request of another form is refused before. Further members are allowed: the protocol has
 * more than Temper uses.
 */

const Id = Type.String({ minLength: 1, maxLength: 128 });
const Context = Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{0,64}$' }));
const Names = Type.Optional(Type.Array(Type.String({ maxLength: 512 }), { maxItems: 32 }));
const AnyObject = Type.Optional(Type.Object({}));
const Text = Type.Optional(Type.String());

const PartForm = Type.Object({
  kind: Text,
  text: Text,
  raw: Text,
  url: Text,
  file: AnyObject,
  filename: Text,
  mediaType: Text,
  metadata: AnyObject,
});

const MessageForm = Type.Object({
  messageId: Type.String({ pattern: '^[\\x21-\\x7e]{1,128}$' }),
  contextId: Context,
  taskId: Type.Optional(Type.String({ maxLength: 128 })),
  role: Type.Enum(['ROLE_USER', 'user']),
  parts: Type.Array(PartForm, { maxItems: 64 }),
  metadata: AnyObject,
  extensions: Names,
  referenceTaskIds: Names,
});

const Length = Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 }));

const SendParameters = Type.Object({
  message: MessageForm,
  configuration: Type.Optional(
    Type.Object({
      acceptedOutputModes: Names,
      historyLength: Length,
      returnImmediately: Type.Optional(Type.Boolean()),
      blocking: Type.Optional(Type.Boolean()),
      taskPushNotificationConfig: AnyObject,
      pushNotificationConfig: AnyObject,
    }),
  ),
  metadata: AnyObject,
});

const TaskParameters = Type.Object({ id: Id, historyLength: Length, metadata: AnyObject });

const PARAMETERS: Readonly<Record<string, TSchema>> = {
  SendMessage: SendParameters,
  SendStreamingMessage: SendParameters,
  'message/send': SendParameters,
  'message/stream': SendParameters,
  GetTask: TaskParameters,
  CancelTask: TaskParameters,
  SubscribeToTask: TaskParameters,
  'tasks/get': TaskParameters,
  'tasks/cancel': TaskParameters,
  'tasks/resubscribe': TaskParameters,
};

const Envelope = Type.Object({
  jsonrpc: Type.Literal('2.0'),
  id: Type.Optional(Type.Union([Type.String({ maxLength: 256 }), Type.Integer(), Type.Null()])),
  method: Type.String({ minLength: 1, maxLength: 128 }),
  params: AnyObject,
});
export interface RpcRequest {
  id?: string | number | null;
  method: string;
  params?: Record<string, unknown>;
}

type Check = (value: unknown, at: string) => string | undefined;

const checkEnvelope = checkOf(Envelope);
const PARAMETER_CHECKS: ReadonlyMap<string, Check> = new Map(
  Object.entries(PARAMETERS).map(([method, schema]) => [method, checkOf(schema)]),
);

/** Why the body is not a JSON-RPC request; undefined for one. */
export function envelopeProblem(body: unknown): string | undefined {
  return checkEnvelope(body, 'body');
}

/** Why the parameters have not the form that the method needs; undefined for valid ones, and for methods that take none of them. */
export function parameterProblem({ method, params }: RpcRequest): string | undefined {
  return PARAMETER_CHECKS.get(method)?.(params ?? {}, 'params');
}

function checkOf(schema: TSchema): Check {
  const compiled = Compile(schema);
  return (value, at) => {
    if (compiled.Check(value)) return undefined;
    const { path, message } = firstViolation(schema, value);
    return `${at}${path.replaceAll('/', '.')} ${message}`;
  };
}
