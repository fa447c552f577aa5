-------------------------- MODULE ForeignKeyJoinHashes --------------------------
(* The foreign-key join in which different values have the same hash. A model uses one of these definitions as Hash.   *)
(*                                                                                                                     *)
(* The reference compares hashes of 128 bits, which collide only by chance. In ForeignKeyJoin a value represents its   *)
(* hash, so hashes never collide.                                                                                      *)
EXTENDS ForeignKeyJoin

(* All values have the same hash; a deleted row has none.                                                              *)
AllEqual(row) == IF row = None THEN None ELSE LeftRow(1, None)

(* Values have the same hash exactly if they refer to the same right key.                                              *)
EqualForAKey(row) == IF row = None THEN None ELSE LeftRow(1, row.foreign_key)

=============================================================================
