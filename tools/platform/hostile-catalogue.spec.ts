import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type CataloguedDocument,
  HOSTILE_TEXTS,
  type HostileRequest,
  hostileRequests,
} from './hostile-catalogue';

interface Described extends CataloguedDocument {
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties?: Readonly<Record<string, object>> }>>;
  };
}

const DOCUMENTS = ['auth', 'settings', 'task'].map((name) => {
  const file = join(__dirname, `../../docs/openapi/${name}-service.json`);
  return JSON.parse(readFileSync(file, 'utf8')) as Described;
});
const NUL = HOSTILE_TEXTS.find((text) => text.includes('\0')) ?? '';

/** The request bodies of all operations, with the member names of their schemas. */
const BODIES = DOCUMENTS.flatMap((document) =>
  Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).flatMap((operation) =>
      Object.entries(operation.requestBody?.content ?? {}).map(([mediaType, { schema }]) => {
        const name = schema?.$ref?.split('/').at(-1) ?? '';
        const members = Object.keys(document.components.schemas[name]?.properties ?? {});
        return { operationId: operation.operationId, mediaType, members };
      }),
    ),
  ),
);

const REQUESTS = DOCUMENTS.flatMap((document) => hostileRequests(document));

function requestsOf(operationId: string): HostileRequest[] {
  return REQUESTS.filter((request) => request.operationId === operationId);
}

describe('the catalogue of hostile requests', () => {
  it.each(BODIES)(
    'makes each member of the $mediaType body of $operationId hostile',
    ({ operationId, mediaType, members }) => {
      const bodies = requestsOf(operationId).filter(({ headers }) =>
        headers.some(([name, value]) => name === 'Content-Type' && value === mediaType),
      );
      const hostile = new Set(bodies.map(({ trick }) => /^body\.([^. ]+)/.exec(trick)?.[1]));
      expect(members.length).toBeGreaterThan(0);
      expect(members.filter((member) => !hostile.has(member))).toEqual([]);
    },
  );

  it('makes nested members hostile too', () => {
    const tricks = requestsOf('writeSettings').map(({ trick }) => trick);
    for (const member of ['delete', 'ifMatch', 'ifNoneMatch', 'settingValue'])
      expect(tricks.some((trick) => trick.startsWith(`body.writes.0.${member} is `))).toBe(true);
  });

  it('keeps an optional header valid while another parameter is hostile, and the other way round', () => {
    const requests = requestsOf('putSetting').filter(({ body }) => body !== null);
    const hasHeader = ({ headers }: HostileRequest, name: string): boolean =>
      headers.some(([header]) => header === name);
    const besides = requests.filter(({ trick }) => trick.startsWith('settingName is '));
    expect(besides.some((one) => hasHeader(one, 'Idempotency-Key') && hasHeader(one, 'If-Match'))).toBe(true);
    expect(besides.some((one) => !hasHeader(one, 'Idempotency-Key'))).toBe(true);
    expect(requests.map(({ trick }) => trick)).toContain(
      `Idempotency-Key is ${JSON.stringify(NUL).slice(0, 60)} beside optional ones`,
    );
  });

  it('uses a known value for its operation, and rotates through several', () => {
    const known = { id: 'a-schedule', 'completeInstance.id': ['one', 'two'] };
    const requests = DOCUMENTS.flatMap((document) => hostileRequests(document, known));
    const targetsOf = (operationId: string): string[] =>
      requests.filter((one) => one.operationId === operationId).map(({ target }) => target);
    const bodies = requests.filter(
      (one) => one.operationId === 'completeInstance' && one.trick.startsWith('body.'),
    );
    const targets = new Set(bodies.map(({ target }) => target));
    expect([...targets]).toEqual(['/Instances/one/commands/complete', '/Instances/two/commands/complete']);
    expect(targetsOf('pauseSchedule')).toContain('/Schedules/a-schedule/commands/pause');
  });
});
