import { z } from 'zod';
import { findOverlongList } from './list-bounds';
import { validatedBy } from './validation';

const item = z.strictObject({ name: z.string(), tags: z.array(z.string()).max(2).optional() });

describe('findOverlongList', () => {
  it('returns the path of a too long list at any depth', () => {
    const schema = z.strictObject({ items: z.array(item).min(1).max(3).nullable(), other: z.string() });
    expect(findOverlongList(schema, { items: [{}, {}, {}, {}] })).toEqual({ path: ['items'], maxItems: 3 });
    expect(findOverlongList(schema, { items: [{}, { tags: [1, 2, 3] }] })).toEqual({
      path: ['items', 1, 'tags'],
      maxItems: 2,
    });
    expect(findOverlongList(schema, { items: [{}, {}, {}] })).toBeNull();
  });

  it.each([null, undefined, 'x', 7, [], { items: 'x' }, { items: { length: 9 } }])(
    'finds none in %j',
    (value) => {
      expect(findOverlongList(z.object({ items: z.array(item).max(3) }), value)).toBeNull();
    },
  );

  it('reads schemas that transform, refine, preprocess or refer to others', () => {
    const named = z.array(item).max(1).meta({ id: 'Items' });
    const schema = z
      .preprocess((body) => body ?? {}, z.object({ items: named, name: z.string().transform(Number) }))
      .refine(() => true);
    expect(findOverlongList(schema, { items: [{}, {}] })).toEqual({ path: ['items'], maxItems: 1 });
  });

  it('ignores lists without a limit and handles recursive schemas', () => {
    interface Tree {
      branches: Tree[];
    }
    const tree: z.ZodType<Tree> = z.object({ branches: z.array(z.lazy(() => tree)) });
    expect(findOverlongList(tree, { branches: [{ branches: [] }] })).toBeNull();
  });
});

describe('validatedBy', () => {
  const metadata = { type: 'body' } as const;

  it('validates no member of a list that is too long', () => {
    let seen = 0;
    const counted = z.unknown().refine(() => (seen += 1) > 0);
    const pipe = validatedBy(z.object({ items: z.array(counted).max(3) }));
    expect(() => pipe.transform({ items: Array(40_000).fill({}) }, metadata) as unknown).toThrow(
      expect.objectContaining({
        problem: expect.objectContaining({
          status: 400,
          errors: { items: ['Too big: expected array to have <=3 items'] },
        }),
      }),
    );
    expect(seen).toBe(0);
  });

  it('limits the unknown members and the wrong fields that a response names', () => {
    const names = Array.from({ length: 12_000 }, (_none, index) => `unknown-member-${String(index)}`);
    const body = Object.fromEntries(names.map((name) => [name, 0]));
    const problemOf = (schema: z.ZodType, value: unknown): unknown => {
      try {
        return validatedBy(schema).transform(value, metadata);
      } catch (error) {
        return (error as { problem: unknown }).problem;
      }
    };
    expect(JSON.stringify(problemOf(z.strictObject({}), body)).length).toBeLessThan(1_000);
    expect(problemOf(z.strictObject({}), { a: 1 })).toMatchObject({
      errors: { request: ['Unrecognized key: "a"'] },
    });
    const shape = Object.fromEntries(names.slice(0, 500).map((name) => [name, z.string()]));
    const { errors } = problemOf(z.object(shape), body) as { errors: object };
    expect(Object.keys(errors)).toHaveLength(50);
  });
});
