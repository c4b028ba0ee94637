import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import { DigestText, Timestamp } from '../schema-parts.ts';

/** Links of one page, and bytes of the records in it. */
export const MAX_AUDIT_LINKS = 1_000;
export const MAX_AUDIT_BYTES = 512 * 1_024;

const Sequence = (description: string) => Type.Integer({ minimum: 0, description });

export const AuditQuery = Type.Object(
  {
    after: Type.Optional(Sequence('Only links behind this sequence.')),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_AUDIT_LINKS })),
  },
  closed,
);

const AuditLink = Type.Object(
  {
    seq: Sequence('Of the record in the stream of the installation.'),
    leaf: Type.Optional(DigestText),
    record: Type.Optional(
      Type.Object(
        {
          subject: Type.String(),
          time: Timestamp,
          data: Type.String({ description: 'The bytes of the record, which its digest covers.' }),
        },
        closed,
      ),
    ),
  },
  {
    ...closed,
    description: 'A record of the namespace, or the digest alone of a record of another namespace.',
  },
);

export const AuditPage = Type.Object(
  {
    links: Type.Array(AuditLink, { description: 'In the order of the stream.' }),
    firstSequence: Sequence('The first record that is still stored.'),
    lastSequence: Sequence('The last record; 0 for an empty stream.'),
    maxAgeMs: Type.Integer({ minimum: 0, description: 'Older records are removed.' }),
  },
  { ...closed, description: 'A page of the provenance chain.' },
);
export type AuditPage = Static<typeof AuditPage>;
