-------------------------- MODULE ForeignKeyJoinHashes --------------------------
(* The foreign-key join where different values have the same hash. A model takes one of these for Hash.                *)
(*                                                                                                                     *)
(* The reference compares hashes of 128 bits, so that values collide by chance alone. ForeignKeyJoin lets a value      *)
(* stand for its hash, so that they never do.                                                                          *)
EXTENDS ForeignKeyJoin

(* All values have the same hash; a deleted row has none.                                                              *)
AllEqual(row) == IF row = None THEN None ELSE LeftRow(1, None)

(* Values that name the same right key have the same hash; others don't.                                               *)
EqualForAKey(row) == IF row = None THEN None ELSE LeftRow(1, row.foreign_key)

=============================================================================
