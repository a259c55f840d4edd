import { describeSchemaDrift } from '@platform/testing';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../src/database-layout';

describeSchemaDrift({ schema: SCHEMA, entities: ENTITIES, migrations: MIGRATIONS });
