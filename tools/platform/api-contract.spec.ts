import { ApiContract, type Exchange } from './api-contract.ts';

const text = { type: 'string' };
const task = { type: 'object', required: ['name'], properties: { name: text } };
const problem = { type: 'object', required: ['status'], properties: { status: { type: 'integer' } } };

const DOCUMENT = {
  paths: {
    '/tasks/{id}': {
      put: {
        operationId: 'putTask',
        security: [{ accessToken: [] }],
        requestBody: { required: true, content: { 'application/json': { schema: task } } },
        responses: {
          '200': {
            description: 'Done.',
            headers: { ETag: { description: 'Tag.', required: true, schema: text } },
            content: { 'application/json': { schema: task } },
          },
        },
      },
    },
    '/tasks/newest': {
      get: { operationId: 'getNewest', security: [], responses: { '204': { description: 'None.' } } },
    },
  },
  components: { schemas: { Problem: problem }, responses: {}, securitySchemes: {} },
};

const PUT: Exchange = {
  method: 'PUT',
  target: '/Tasks/1/?x=1',
  requestHeaders: { authorization: 'Bearer x', 'content-type': 'application/json' },
  requestBody: '{"name":"a"}',
  status: 200,
  headers: { etag: '"1"', 'content-type': 'application/json; charset=utf-8' },
  body: '{"name":"a"}',
};
const GET: Exchange = { ...PUT, method: 'GET', requestBody: '', headers: {}, body: '' };
const PROBLEM = { headers: { 'content-type': 'application/problem+json' }, body: '{"status":404}' };

describe('ApiContract', () => {
  const violations = (exchange: Exchange): string =>
    new ApiContract(DOCUMENT).judge(exchange).violations.join('; ');

  it('accepts a documented exchange, in any letter case and with a trailing slash', () => {
    expect(new ApiContract(DOCUMENT).judge(PUT)).toEqual({ seen: 'putTask 200', violations: [] });
  });

  it('prefers literal paths to templates, and treats HEAD as GET', () => {
    const head = { ...GET, method: 'HEAD', target: '/tasks/newest', status: 204 };
    expect(new ApiContract(DOCUMENT).judge(head)).toEqual({ seen: 'getNewest 204', violations: [] });
  });

  it.each<[string, Partial<Exchange>, RegExp]>([
    ['a status', { status: 201 }, /putTask does not document status 201/],
    ['a missing header', { headers: { 'content-type': 'application/json' } }, /header ETag is missing/],
    ['a content type', { headers: { etag: '"1"', 'content-type': 'text/html' } }, /content type text\/html/],
    ['a missing member', { body: '{}' }, /required property 'name'/],
    ['an undocumented member', { body: '{"name":"a","more":1}' }, /additional properties.*more/],
    ['a body that is not JSON', { body: '{' }, /not JSON/],
    [
      'a request that was accepted',
      { requestBody: '{"name":1}' },
      /the request does not fit its schema: \/name must be string/,
    ],
    ['a request without a token', { requestHeaders: {} }, /no token was needed/],
    ['an address', { target: '/elsewhere' }, /undocumented address/],
    ['a method', { method: 'DELETE' }, /undocumented address/],
  ])('reports %s that the document does not allow', (_what, change, expected) => {
    expect(violations({ ...PUT, ...change })).toMatch(expected);
  });

  it('expects a problem, and nothing else, at unknown addresses', () => {
    const nothing = { ...GET, target: '/elsewhere', status: 404 };
    expect(violations({ ...nothing, ...PROBLEM })).toBe('');
    expect(violations(nothing)).toMatch(/content type none for a problem/);
  });

  it('expects no body where none is documented', () => {
    const newest = { ...GET, target: '/tasks/newest', status: 204 };
    expect(violations({ ...newest, body: 'x' })).toMatch(/a body where none is documented/);
  });
});
