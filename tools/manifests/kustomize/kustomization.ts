import { z } from 'zod';

const name = z.string().regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be a plain name, not a pattern');
const path = z
  .string()
  .min(1)
  .refine((text) => !text.includes('://'), 'must be a path, nothing remote');
const labels = z.record(z.string(), z.string());

const patch = z.strictObject({
  target: z.strictObject({ kind: z.string().regex(/^[A-Za-z]+$/), name: name.optional() }).optional(),
  patch: z.string(),
});

const generator = z.strictObject({
  name,
  behavior: z.enum(['create', 'merge']).default('create'),
  literals: z.array(z.string().regex(/^[A-Z][A-Z0-9_]*=/, 'must be NAME=value')).default([]),
  files: z.array(path).default([]),
  options: z
    .strictObject({ disableNameSuffixHash: z.boolean().default(false), labels: labels.optional() })
    .optional(),
});

const image = z.strictObject({
  name: z.string(),
  newName: z.string().optional(),
  newTag: z.string().optional(),
  digest: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/)
    .optional(),
});

const fields = {
  namespace: name.optional(),
  resources: z.array(path).default([]),
  components: z.array(path).default([]),
  labels: z.array(z.strictObject({ pairs: labels })).default([]),
  images: z.array(image).default([]),
  configMapGenerator: z.array(generator).default([]),
  patches: z.array(patch).default([]),
};

/**
 * The part of kustomize that these manifests use and this renderer knows. Anything else is refused, not ignored: a field that is
 * not here must come with its transformation.
 */
export const kustomizationSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    apiVersion: z.literal('kustomize.config.k8s.io/v1beta1'),
    kind: z.literal('Kustomization'),
    ...fields,
  }),
  z.strictObject({
    apiVersion: z.literal('kustomize.config.k8s.io/v1alpha1'),
    kind: z.literal('Component'),
    ...fields,
  }),
]);

export type Kustomization = z.output<typeof kustomizationSchema>;
export type Patch = Kustomization['patches'][number];
export type ConfigMapGenerator = Kustomization['configMapGenerator'][number];
export type Image = Kustomization['images'][number];
