import { describeSchemaDrift } from '@platform/testing';
import { SCHEMAS } from '../src/migrations/schemas';

for (const { settings } of SCHEMAS) describeSchemaDrift(settings);
