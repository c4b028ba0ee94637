import { Type } from 'typebox';
import { ObjectName, Text, Uid, closed } from './common.ts';

const MANAGED = 'Set by the API server; ignored in a manifest.';

const Namespace = Type.String({
  'x-temper-form': 'a name of lower-case letters, digits and dashes',
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  maxLength: 63,
  description: 'The namespace of the object: lower-case letters, digits and dashes.',
});

const StringMap = (description: string) =>
  Type.Record(Type.String(), Type.String({ maxLength: 262_144 }), { maxProperties: 256, description });

/** The metadata that a manifest may contain, including the fields that the API server adds to stored objects. */
export const Metadata = Type.Object(
  {
    name: { ...ObjectName, description: 'The name of the object: lower-case letters, digits, dashes and dots.' },
    namespace: Type.Optional(Namespace),
    labels: Type.Optional(StringMap('Labels: string keys and string values.')),
    annotations: Type.Optional(StringMap('Annotations: string keys and string values.')),
    uid: Type.Optional(Uid),
    generation: Type.Optional(Type.Integer({ minimum: 0, description: MANAGED })),
    resourceVersion: Type.Optional(Text(64, MANAGED)),
    creationTimestamp: Type.Optional(Type.Unknown({ description: MANAGED })),
    deletionTimestamp: Type.Optional(Type.Unknown({ description: MANAGED })),
    deletionGracePeriodSeconds: Type.Optional(Type.Unknown({ description: MANAGED })),
    managedFields: Type.Optional(Type.Unknown({ description: MANAGED })),
    selfLink: Type.Optional(Type.Unknown({ description: MANAGED })),
    finalizers: Type.Optional(Type.Array(Text(253, 'A finalizer.'), { maxItems: 20 })),
    ownerReferences: Type.Optional(
      Type.Array(
        Type.Object(
          {
            apiVersion: Text(253, 'The API group and version of the owner.'),
            kind: Text(63, 'The kind of the owner.'),
            name: Text(253, 'The name of the owner.'),
            uid: Uid,
            controller: Type.Optional(Type.Boolean()),
            blockOwnerDeletion: Type.Optional(Type.Boolean()),
          },
          closed,
        ),
        { maxItems: 20 },
      ),
    ),
  },
  closed,
);
