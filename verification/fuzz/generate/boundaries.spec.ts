import { makeFixtures } from '../test/fixtures';
import { boundariesOf } from './boundaries';
import { makeRequest } from './requests';

const fixtures = makeFixtures();
const document = { paths: {} };

describe('boundary values', () => {
  it('cover every limit and format of a schema', () => {
    const startDate = boundariesOf(document, {
      anyOf: [{ type: 'string', format: 'date' }, { type: 'string', format: 'date-time' }, { type: 'null' }],
    });
    expect(startDate).toEqual(
      expect.arrayContaining([
        '0000-01-01',
        '9999-12-31T23:59:59.999999999-23:00',
        '0000-01-01T00:00:00+01:00',
      ]),
    );
    const name = boundariesOf(document, { type: 'string', minLength: 1, maxLength: 200 }) as string[];
    expect(new Set(name.map((text) => [...text].length))).toEqual(new Set([0, 1, 2, 199, 200, 201]));
    expect(boundariesOf(document, { type: 'integer', minimum: 1, maximum: 200 })).toEqual(
      expect.arrayContaining([0, 1, 200, 201, 2 ** 53]),
    );
    const lists = boundariesOf(document, {
      type: 'array',
      items: { type: 'string' },
      maxItems: 3,
    }) as unknown[][];
    expect(new Set(lists.map(({ length }) => length))).toEqual(new Set([0, 1, 2, 3, 4]));
  });

  it('are used in fields and parameters of requests', () => {
    const requests = Array.from({ length: 4_000 }, (_none, number) => makeRequest(7, number, fixtures));
    const tricks = requests
      .filter(({ kind }) => kind === 'boundary')
      .map(({ trick }) => trick.split(' = ')[0]);
    expect(new Set(tricks)).toEqual(
      new Set([...tricks, 'startDate', 'completedAt', 'dueFrom', 'facilityId', 'pageSize']),
    );
  });
});
